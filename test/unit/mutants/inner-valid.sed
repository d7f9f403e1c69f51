# src/core/bptree/bpt_descend.c: a child is followed unseen
/^descend_inner/,/^}/s/torn || !euno_lock_validate(&node->lock, version)/torn/
