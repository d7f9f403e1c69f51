# src/core/bptree/bpt_descend.c: a child is followed unseen
/^euno_bpt_descend_bytes/,/^}/s/torn || !euno_lock_validate(&node->lock, version)/torn/
