-- SYSTEM acyclic: the closure of an acyclic graph
-- NODES Node, Via
-- INPUT EDGES (Start NODE, End NODE): the rows that there are now; copies and NULLs are allowed
-- INPUT CHANGES (Start NODE, End NODE, Weight BIGINT): the rows that came (+1) and went (-1)
-- TABLE TC (Start NODE, End NODE): the pairs that a path connects
-- SETTING share = 4: how many ways over deleted edges we follow, by the size of TC
-- SETTING far = 24: how long paths are found edge by edge, when the closure is built

-- OUTPUT pairs
SELECT t.Start, t.End FROM TC AS t;

-- ON BATCH: the deletions first, so that an edge may be turned round
-- INCLUDE net_directed.sql

-- IF NOT EMPTY(DELETED)

-- STEP UPWARD: pairs that end where a deleted edge starts or ends
SELECT t.Start, t.End FROM TC AS t
JOIN (SELECT d.Start AS Node FROM DELETED AS d UNION SELECT d.End AS Node FROM DELETED AS d) AS n
  ON n.Node = t.End;

-- STEP OUTWARD: the edges that start where a deleted one starts
SELECT DISTINCT k.Start, k.End FROM KEPT AS k
JOIN (SELECT DISTINCT d.Start FROM DELETED AS d) AS n ON n.Start = k.Start
UNION ALL
SELECT d.Start, d.End FROM DELETED AS d;

-- STEP REDUNDANT: deleted edges beside which there was another way, an edge and then a path; in an
-- acyclic graph all of them can go at once
SELECT DISTINCT d.Start, d.End FROM OUTWARD AS o JOIN UPWARD AS u ON u.Start = o.End
JOIN DELETED AS d ON d.Start = o.Start AND d.End = u.End;

-- STEP CUT: the others
SELECT d.Start, d.End, 1 AS Weight FROM DELETED AS d
WHERE NOT EXISTS (SELECT 1 FROM REDUNDANT AS r WHERE r.Start = d.Start AND r.End = d.End);

-- IF NOT EMPTY(CUT)
-- INCLUDE closure_delete.sql
-- END
-- END

-- INCLUDE closure_insert.sql

-- VIEW CLOSING: nodes that would be on a cycle
SELECT d.Start FROM DELTA AS d WHERE d.Start = d.End;

-- VIEW CYCLE_EDGES: the edges between them
SELECT DISTINCT e.Start, e.End FROM EDGES AS e
JOIN CLOSING AS x ON x.Start = e.Start
JOIN CLOSING AS y ON y.Start = e.End;

-- FAIL CYCLE UNLESS EMPTY(CLOSING) SHOW CYCLE_EDGES

-- ON BUILD
-- INCLUDE closure_build.sql

-- VIEW CLOSING: nodes on a cycle
SELECT a.Start FROM ALL_PAIRS AS a WHERE a.Start = a.End;

-- VIEW CYCLE_EDGES: the edges between them
SELECT DISTINCT g.Start, g.End FROM G AS g
JOIN CLOSING AS x ON x.Start = g.Start
JOIN CLOSING AS y ON y.Start = g.End;

-- FAIL CYCLE UNLESS EMPTY(CLOSING) SHOW CYCLE_EDGES

-- INSERT INTO TC
SELECT a.Start, a.End FROM ALL_PAIRS AS a;
