# Official sources, fetched once where no data root is given; a file that does not match its sha256 is removed.


localrules:
    fetch_wiki,
    fetch_senteval,


rule fetch_wiki:
    output:
        plan.FETCHED + "/wiki/wiki1m_for_simcse.txt",
    log:
        plan.FETCHED + "/wiki.log",
    retries: 3
    shell:
        "{PY} -m csebench fetch wiki --out {plan.FETCHED} > {log} 2>&1"


rule fetch_senteval:
    output:
        plan.FETCHED + "/downstream/STS/STSBenchmark/sts-dev.csv",
        plan.FETCHED + "/downstream/STS/STSBenchmark/sts-test.csv",
        plan.FETCHED + "/downstream/SICK/SICK_test_annotated.txt",
    log:
        plan.FETCHED + "/senteval.log",
    retries: 3
    shell:
        "{PY} -m csebench fetch senteval --out {plan.FETCHED} > {log} 2>&1"
