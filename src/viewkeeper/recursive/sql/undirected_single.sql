-- SYSTEM undirected_single: the closure of an undirected graph, one edge at a time (section 3)
-- NODES Node
-- INPUT G (Start NODE, End NODE): the edges before the update, each in both directions
-- TABLE LESSTHAN (Small NODE, Large NODE): a total order of the nodes
-- TABLE FOREST (A NODE, B NODE): a spanning forest, each edge in both directions
-- TABLE THROUGH (A NODE, V NODE, B NODE): V is on the path of the forest from A to B

-- OUTPUT pairs
SELECT DISTINCT t.A AS Start, t.B AS End FROM THROUGH AS t;

-- ON INSERT (a NODE, b NODE): the edge between a and b, not in G

-- STEP GNODES: the nodes so far
SELECT g.Start AS Node FROM G AS g UNION SELECT g.End AS Node FROM G AS g;

-- STEP EXPAND: a new node is larger than all the others
SELECT n.Node AS Small, :a AS Large FROM GNODES AS n
WHERE NOT EXISTS (SELECT 1 FROM GNODES AS m WHERE m.Node = :a)
UNION
SELECT n.Node AS Small, :b AS Large FROM GNODES AS n
WHERE NOT EXISTS (SELECT 1 FROM GNODES AS m WHERE m.Node = :b);

-- The paper orders two new nodes only in an empty graph; then two that come later have no order.
-- STEP INITIAL: of two new nodes the second is the larger one
SELECT :a AS Small, :b AS Large
WHERE :a <> :b AND NOT EXISTS (SELECT 1 FROM GNODES AS m WHERE m.Node = :a OR m.Node = :b);

-- INSERT INTO LESSTHAN
SELECT e.Small, e.Large FROM EXPAND AS e UNION SELECT i.Small, i.Large FROM INITIAL AS i;

-- STEP BRIDGE: the edge, if it connects two trees
SELECT :a AS A, :b AS B
WHERE :a <> :b AND NOT EXISTS (SELECT 1 FROM THROUGH AS t WHERE t.A = :a AND t.B = :b);

-- INSERT INTO FOREST
SELECT e.A, e.B FROM BRIDGE AS e UNION SELECT e.B AS A, e.A AS B FROM BRIDGE AS e;

-- STEP GNODES: now with the ends of the edge
SELECT n.Node FROM GNODES AS n UNION SELECT :a AS Node UNION SELECT :b AS Node;

-- STEP T_STAR: THROUGH, and each node by itself
SELECT n.Node AS A, n.Node AS V, n.Node AS B FROM GNODES AS n
UNION
SELECT t.A, t.V, t.B FROM THROUGH AS t;

-- In print, part (2) also has Node = T1.V, parts (3) and (4) go from T1.B to T2.A, and nothing asks
-- whether the edge connects two trees; then no path over the edge is complete.
-- INSERT INTO THROUGH: (1), (2) paths over the edge; (3), (4) the way back
SELECT t1.A, n.Node AS V, t2.B
FROM T_STAR AS t1 CROSS JOIN T_STAR AS t2 JOIN GNODES AS n ON n.Node = t1.V
WHERE t1.B = :a AND t2.A = :b AND EXISTS (SELECT 1 FROM BRIDGE AS e)
UNION
SELECT t1.A, n.Node AS V, t2.B
FROM T_STAR AS t1 CROSS JOIN T_STAR AS t2 JOIN GNODES AS n ON n.Node = t2.V
WHERE t1.B = :a AND t2.A = :b AND EXISTS (SELECT 1 FROM BRIDGE AS e)
UNION
SELECT t2.B AS A, n.Node AS V, t1.A AS B
FROM T_STAR AS t1 CROSS JOIN T_STAR AS t2 JOIN GNODES AS n ON n.Node = t1.V
WHERE t1.B = :a AND t2.A = :b AND EXISTS (SELECT 1 FROM BRIDGE AS e)
UNION
SELECT t2.B AS A, n.Node AS V, t1.A AS B
FROM T_STAR AS t1 CROSS JOIN T_STAR AS t2 JOIN GNODES AS n ON n.Node = t2.V
WHERE t1.B = :a AND t2.A = :b AND EXISTS (SELECT 1 FROM BRIDGE AS e);

-- ON DELETE (a NODE, b NODE): the edge between a and b, in G

-- STEP G_NEW: the graph without the edge
SELECT g.Start, g.End FROM G AS g
WHERE NOT (g.Start = :a AND g.End = :b) AND NOT (g.Start = :b AND g.End = :a);

-- STEP GNODES
SELECT g.Start AS Node FROM G_NEW AS g UNION SELECT g.End AS Node FROM G_NEW AS g;

-- STEP SHRINK: a node that is gone leaves the order
SELECT l.Small, l.Large FROM LESSTHAN AS l
WHERE NOT EXISTS (SELECT 1 FROM GNODES AS n WHERE n.Node = :a) AND (l.Small = :a OR l.Large = :a)
UNION
SELECT l.Small, l.Large FROM LESSTHAN AS l
WHERE NOT EXISTS (SELECT 1 FROM GNODES AS n WHERE n.Node = :b) AND (l.Small = :b OR l.Large = :b);

-- DELETE FROM LESSTHAN
SELECT s.Small, s.Large FROM SHRINK AS s;

-- STEP CUT: the edge, if it is in the forest
SELECT f.A, f.B FROM FOREST AS f WHERE f.A = :a AND f.B = :b;

-- STEP REP_ALL: edges from a's side to b's side
SELECT g.Start, g.End FROM G_NEW AS g
WHERE EXISTS (
    SELECT 1 FROM THROUGH AS t1 CROSS JOIN THROUGH AS t2
    WHERE t1.A = g.Start AND t1.V = :a AND t1.B = :b AND t2.A = :a AND t2.V = :b AND t2.B = g.End
  )
  AND EXISTS (SELECT 1 FROM CUT AS c);

-- In print the edge must also go from the smaller end to the larger one; then an edge that goes from
-- a larger node on a's side to a smaller one on b's is lost.
-- STEP REP: the smallest of them
SELECT r.Start, r.End FROM REP_ALL AS r
WHERE NOT EXISTS (
    SELECT 1 FROM REP_ALL AS r1 CROSS JOIN LESSTHAN AS l
    WHERE (r1.Start = l.Small AND r.Start = l.Large)
       OR (r1.Start = r.Start AND r1.End = l.Small AND r.End = l.Large)
  );

-- STEP DELTA: (1) what goes over the edge; (2) the way back
SELECT t.A, t.V, t.B FROM THROUGH AS t
JOIN THROUGH AS t1 ON t1.A = t.A JOIN THROUGH AS t2 ON t2.B = t.B
WHERE t1.V = :a AND t1.B = :b AND t2.A = :a AND t2.V = :b AND EXISTS (SELECT 1 FROM CUT AS c)
UNION
SELECT t.A, t.V, t.B FROM THROUGH AS t
JOIN THROUGH AS t1 ON t1.A = t.B JOIN THROUGH AS t2 ON t2.B = t.A
WHERE t1.V = :a AND t1.B = :b AND t2.A = :a AND t2.V = :b AND EXISTS (SELECT 1 FROM CUT AS c);

-- STEP T_STAR: what is left of THROUGH, and each node by itself
SELECT n.Node AS A, n.Node AS V, n.Node AS B FROM GNODES AS n
UNION
SELECT t.A, t.V, t.B FROM THROUGH AS t
WHERE NOT EXISTS (SELECT 1 FROM DELTA AS d WHERE d.A = t.A AND d.V = t.V AND d.B = t.B);

-- STEP OVER_REP: paths over the replacement, as on insertion
SELECT t1.A, n.Node AS V, t2.B FROM REP AS e
JOIN T_STAR AS t1 ON t1.B = e.Start JOIN T_STAR AS t2 ON t2.A = e.End JOIN GNODES AS n ON n.Node = t1.V
UNION
SELECT t1.A, n.Node AS V, t2.B FROM REP AS e
JOIN T_STAR AS t1 ON t1.B = e.Start JOIN T_STAR AS t2 ON t2.A = e.End JOIN GNODES AS n ON n.Node = t2.V
UNION
SELECT t2.B AS A, n.Node AS V, t1.A AS B FROM REP AS e
JOIN T_STAR AS t1 ON t1.B = e.Start JOIN T_STAR AS t2 ON t2.A = e.End JOIN GNODES AS n ON n.Node = t1.V
UNION
SELECT t2.B AS A, n.Node AS V, t1.A AS B FROM REP AS e
JOIN T_STAR AS t1 ON t1.B = e.Start JOIN T_STAR AS t2 ON t2.A = e.End JOIN GNODES AS n ON n.Node = t2.V;

-- DELETE FROM THROUGH
SELECT d.A, d.V, d.B FROM DELTA AS d
WHERE NOT EXISTS (SELECT 1 FROM OVER_REP AS o WHERE o.A = d.A AND o.V = d.V AND o.B = d.B);

-- INSERT INTO THROUGH
SELECT o.A, o.V, o.B FROM OVER_REP AS o
WHERE NOT EXISTS (SELECT 1 FROM DELTA AS d WHERE d.A = o.A AND d.V = o.V AND d.B = o.B);

-- DELETE FROM FOREST
SELECT c.A, c.B FROM CUT AS c UNION SELECT c.B AS A, c.A AS B FROM CUT AS c;

-- INSERT INTO FOREST
SELECT r.Start AS A, r.End AS B FROM REP AS r UNION SELECT r.End AS A, r.Start AS B FROM REP AS r;
