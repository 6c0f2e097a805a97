from csebench.plan import targets
o={}
w={}
for page in targets.pages("mini"):
    for i,s in page.available_runs().items(): o[i]=s
    for r,e in page.available(): w.setdefault(r,set()).add(e)
done=sum(all(targets.score_path(r,e,"mini").exists() for e in w.get(r,())) for r in o if w.get(r))
cells=sum(targets.score_path(r,e,"mini").exists() for r in w for e in w[r])
print(len(o), done, cells, sum(map(len,w.values())))
