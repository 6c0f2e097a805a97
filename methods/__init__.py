"""The methods, one file each, and how they relate.

    bert          the encoder as it is: no training
    whitening     bert, then a linear map that makes the covariance the identity
    simcse        two dropout masks as views, InfoNCE between them
    micse         simcse + ami + moco
    mirror_bert   a span mask besides dropout, InfoNCE in both directions
    ct            two encoders as views, binary cross-entropy on dot products
    random, oracle   controls: a score near 0, a score of 1

    components/ami    mutual information between the views' attention maps; goes with any two-view method
    components/moco   a momentum encoder and a queue of negatives; likewise

A file `methods/<name>.py` is all that a new method needs; start from `_template.py`.
"""
