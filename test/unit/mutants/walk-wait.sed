# src/core/bptree/bpt_walk.c: a walk does not wait for a merge under way
/^euno_bpt_walk_enter/,/^}/s/merging == 0/merging < 3/
