# src/core/bptree/bpt_merge.c: the leaf that was taken in is not marked
s/euno_lock_release_obsolete(&m->right/euno_lock_release(\&m->right/
