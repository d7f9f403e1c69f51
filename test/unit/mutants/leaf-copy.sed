# src/core/bptree/bpt_descend.c: a copy of a leaf is believed unseen
/^copy_leaf(/,/^}/s/!euno_lock_validate(.*))/0)/
