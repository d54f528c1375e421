-- SYSTEM acyclic_single: the closure of an acyclic graph, one edge at a time (section 2)
-- INPUT G (Start NODE, End NODE): the edges before the update
-- TABLE TC (Start NODE, End NODE): the pairs that a path connects

-- OUTPUT pairs: the answer is the stored table; there are no auxiliary ones
SELECT t.Start, t.End FROM TC AS t;

-- ON INSERT (a NODE, b NODE): the edge (a, b), not in G

-- STEP TC_NEW: (1) a path to a, then the edge; (2) the edge, then a path from b; (3) both; (4) itself
SELECT t.Start, :b AS End FROM TC AS t WHERE t.End = :a
UNION
SELECT :a AS Start, t.End FROM TC AS t WHERE t.Start = :b
UNION
SELECT t1.Start, t2.End FROM TC AS t1 CROSS JOIN TC AS t2 WHERE t1.End = :a AND t2.Start = :b
UNION
SELECT :a AS Start, :b AS End;

-- STEP DELTA: the truly new pairs
SELECT n.Start, n.End FROM TC_NEW AS n
WHERE NOT EXISTS (SELECT 1 FROM TC AS t WHERE t.Start = n.Start AND t.End = n.End);

-- The paper takes for granted that the graph stays acyclic; we look.
-- VIEW CLOSING: nodes that would be on a cycle
SELECT d.Start FROM DELTA AS d WHERE d.Start = d.End;

-- VIEW CYCLE_EDGES: the edges between them
SELECT g.Start, g.End
FROM (SELECT e.Start, e.End FROM G AS e UNION SELECT :a AS Start, :b AS End) AS g
JOIN CLOSING AS x ON x.Start = g.Start
JOIN CLOSING AS y ON y.Start = g.End;

-- FAIL CYCLE UNLESS EMPTY(CLOSING) SHOW CYCLE_EDGES

-- INSERT INTO TC
SELECT d.Start, d.End FROM DELTA AS d;

-- ON DELETE (a NODE, b NODE): the edge (a, b), in G

-- STEP SUSPECT: pairs with a path through the edge
SELECT x.Start, y.End FROM TC AS x CROSS JOIN TC AS y WHERE x.End = :a AND y.Start = :b
UNION
SELECT x.Start, :b AS End FROM TC AS x WHERE x.End = :a
UNION
SELECT :a AS Start, x.End FROM TC AS x WHERE x.Start = :b
UNION
SELECT :a AS Start, :b AS End FROM TC AS x WHERE x.Start = :a AND x.End = :b;

-- STEP TRUSTY: pairs that no path through the edge connects, and the other edges
SELECT t.Start, t.End FROM TC AS t
WHERE NOT EXISTS (SELECT 1 FROM SUSPECT AS s WHERE s.Start = t.Start AND s.End = t.End)
UNION
SELECT g.Start, g.End FROM G AS g WHERE NOT (g.Start = :a AND g.End = :b);

-- STEP TC_NEW: one, two or three trusty paths in a row
SELECT t1.Start, t1.End FROM TRUSTY AS t1
UNION
SELECT t1.Start, t2.End FROM TRUSTY AS t1 JOIN TRUSTY AS t2 ON t1.End = t2.Start
UNION
SELECT t1.Start, t3.End
FROM TRUSTY AS t1 JOIN TRUSTY AS t2 ON t1.End = t2.Start JOIN TRUSTY AS t3 ON t2.End = t3.Start;

-- DELETE FROM TC: the bad guys
SELECT t.Start, t.End FROM TC AS t
WHERE NOT EXISTS (SELECT 1 FROM TC_NEW AS n WHERE n.Start = t.Start AND n.End = t.End);
