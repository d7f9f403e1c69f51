# src/core/bptree/bpt_descend.c: nobody goes right
/^look_at_leaf/,/^}/s/where > 0 ? STEP_RIGHT/where > 0 ? STEP_HERE/
