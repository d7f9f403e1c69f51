# src/core/bptree/bpt_walk.c: a walk does not see that a leaf was split
s/euno_load64(&leaf->seqno) != wl->seqno/0/
