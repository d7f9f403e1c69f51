# src/core/bptree/bpt_merge.c: merges do not look for walkers
/^merging_enter/,/^}/s/euno_load64_full(&body->walkers) == 0/true/
