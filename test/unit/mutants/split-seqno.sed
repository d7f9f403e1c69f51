# src/core/bptree/bpt_split.c: a split leaf keeps its seqno
/s.left.leaf.seqno = s.right.leaf.seqno + 1/d
