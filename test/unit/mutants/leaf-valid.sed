# src/core/bptree/bpt_descend.c: what was read in a leaf is believed unseen
/^euno_bpt_valid/,/^}/s/!euno_lock_validate(.*))/0)/
