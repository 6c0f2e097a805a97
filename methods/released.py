"""A released checkpoint as its authors published it: nothing is trained.

Idea: score the file that a paper's authors put on the hub, by the protocol of this project.

Paper: that of the checkpoint; evidence/checkpoints.yaml lists hub ids, poolers and what their READMEs state.
Inputs: sentences. Relations: bert, with another encoder.
A checkpoint whose vectors need more than a pooler (a template, a soft prompt) is not scored.
"""

DECLARATION = {
    "name": "released",
    "version": 1,
    "title": "Released checkpoint",
    "kind": "untrained",
    "paper": "that of the checkpoint (evidence/checkpoints.yaml)",
    "citation": "that of the checkpoint",
    "trains": "nothing",
    "released": True,
    "params": {
        "pooler": ("cls_before_pooler", "SimCSE's READMEs; others are in evidence/checkpoints.yaml"),
    },
}
