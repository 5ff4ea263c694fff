#!/usr/bin/env python3
"""Makes questions about use: uses.py FOLDER REPO... > QUERIES.jsonl

Each repository is a folder in FOLDER. A heading of a document that begins with a verb (`Running with Docker`) becomes a question; its section
is the answer. At most 25 of a repository, drawn with a fixed seed."""
import sys,json,random,re,os
T=sys.argv[1]
V={'installing':'install','configuring':'configure','running':'run','using':'use','building':'build','deploying':'deploy','creating':'create','adding':'add','enabling':'enable','testing':'test','writing':'write','setting':'set','handling':'handle','customizing':'customize','upgrading':'upgrade','contributing':'contribute','debugging':'debug','defining':'define','generating':'generate','getting':'get','managing':'manage','releasing':'release','migrating':'migrate','serving':'serve','changing':'change','disabling':'disable','registering':'register','extending':'extend','passing':'pass','loading':'load','uploading':'upload','logging':'log','monitoring':'monitor','sending':'send','starting':'start','making':'make','working':'work','downloading':'download','importing':'import','exporting':'export','hosting':'host','restoring':'restore'}
BASE=set(V.values())
FORMS=['how do I {}?','how can I {}','what is the way to {}','how to {}']
for repo in sys.argv[2:]:
    found=[];heads={}
    for at,_,names in os.walk(f'{T}/{repo}/'):
        for name in sorted(names):
            if not re.search(r'\.(md|rst|adoc)$',name) or re.search(r'change|history|release|news|license|code_of',name,re.I): continue
            path=os.path.relpath(os.path.join(at,name),f'{T}/{repo}')
            if '/node_modules/' in path or 'test' in path.lower(): continue
            L=open(os.path.join(at,name),errors='replace').read().split('\n')
            hs=[]
            fence=False
            for i,l in enumerate(L):
                if l.startswith('```'): fence=not fence
                if fence: continue
                m=re.match(r'#{1,4}\s+(.*?)\s*#*$',l)
                if m and name.endswith('.md'): hs.append((i+1,m[1],len(l)-len(l.lstrip('#'))))
                elif name.endswith('.rst') and i+1<len(L) and re.fullmatch(r'([=\-~^])\1{3,}',L[i+1]) and l.strip(): hs.append((i+1,l.strip(),'=-~^'.index(L[i+1][0])+1))
                elif name.endswith('.adoc') and re.match(r'={1,4} \S',l): hs.append((i+1,l.lstrip('= '),1))
            for k,(n,h,lv) in enumerate(hs):
                end=(hs[k+1][0]-1) if k+1<len(hs) else len(L)
                if end-n<3: continue
                t=re.sub(r'`|\*|\[([^\]]*)\]\([^)]*\)|\{[^}]*\}',r'\1',h); w=t.split()
                if not 2<=len(w)<=8: continue
                f=w[0].lower(); f=V.get(f,f)
                if f not in BASE: continue
                phrase=' '.join([f]+[x if x.isupper() or not x[0].isupper() else x.lower() for x in w[1:]])
                heads.setdefault(phrase,[]).append((path,n,end))
    ph=[(p,v[0]) for p,v in heads.items() if len(v)==1]
    ph.sort(); random.Random(3).shuffle(ph)
    for i,(p,(path,s,e)) in enumerate(ph[:25]):
        print(json.dumps(dict(repo=repo,query_id=f'{repo}-use{i:02d}',kind='use',query=FORMS[i%4].format(p),relevant=[dict(path=path,start=s,end=e)])))
