# src/core/bptree/bpt_merge.c: the walk that waits for a merge is not woken
/^merging_leave/,/^}/s/== 2/== 3/
