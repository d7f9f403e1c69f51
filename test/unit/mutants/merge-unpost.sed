# src/core/bptree/bpt_merge.c: the directory keeps the leaf that was taken in
s/if (!euno_bpt_unpost(.*))/if (0)/
