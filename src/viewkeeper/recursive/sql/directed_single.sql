-- SYSTEM directed_single: the closure of any directed graph, one edge at a time (section 4)
-- All paths are stored, so this is for graphs of a few nodes.
-- INPUT G (Start NODE, End NODE): the edges before the update
-- TABLE R (Pnum BIGINT, St NODE, End NODE, IntS NODE, IntD NODE): path Pnum goes over IntS → IntD

-- OUTPUT pairs
SELECT DISTINCT r.St AS Start, r.End FROM R AS r;

-- ON DELETE (a NODE, b NODE): the edge (a, b), in G

-- STEP DEADPATH: the paths through the edge
SELECT DISTINCT r.Pnum FROM R AS r WHERE r.IntS = :a AND r.IntD = :b;

-- DELETE FROM R
SELECT r.Pnum, r.St, r.End, r.IntS, r.IntD FROM R AS r JOIN DEADPATH AS d ON d.Pnum = r.Pnum;

-- ON INSERT (a NODE, b NODE): the edge (a, b), not in G
-- pairing(x, y) = (x + y)(x + y + 1) / 2 + y

-- STEP PAIRED: the numbers that the paper gives to paths over the edge
SELECT DISTINCT
    (r1.Pnum + r2.Pnum) * (r1.Pnum + r2.Pnum + 1) DIV 2 + r2.Pnum AS Pair,
    r1.Pnum AS Comp1, r2.Pnum AS Comp2, r1.St, r2.End
FROM R AS r1 CROSS JOIN R AS r2 WHERE r1.End = :a AND r2.St = :b;

-- In print a number may be that of another path: for (b,c), (a,b), (c,a) in this order, both a→b→c
-- and b→c→a→b get 43, and deleting (c,a) deletes both. If so, we go beyond all numbers in use.
-- STEP SHIFT
SELECT COALESCE(MAX(r.Pnum), 0) AS Shift FROM R AS r
WHERE EXISTS (SELECT 1 FROM PAIRED AS p JOIN R AS q ON q.Pnum = p.Pair);

-- STEP V1: a path to a, the edge, a path from b
SELECT p.Pair + s.Shift AS Pair, p.Comp1, p.Comp2, p.St, p.End FROM PAIRED AS p CROSS JOIN SHIFT AS s;

-- STEP VINS1: (1) the edges of both paths; (2) the edge between them
SELECT v.Pair AS Pnum, v.St, v.End, r.IntS, r.IntD FROM V1 AS v
JOIN R AS r ON r.Pnum = v.Comp1 AND r.St = v.St AND r.End = :a
UNION
SELECT v.Pair AS Pnum, v.St, v.End, r.IntS, r.IntD FROM V1 AS v
JOIN R AS r ON r.Pnum = v.Comp2 AND r.St = :b AND r.End = v.End
UNION
SELECT v.Pair AS Pnum, v.St, v.End, :a AS IntS, :b AS IntD FROM V1 AS v;

-- STEP DUMMY: one row, so that there is a largest number
SELECT 0 AS Pnum;

-- STEP TEMP1: the numbers in use
SELECT v.Pnum FROM VINS1 AS v UNION SELECT r.Pnum FROM R AS r UNION SELECT d.Pnum FROM DUMMY AS d;

-- STEP TOO_LARGE: beyond this, the next numbers do not fit 64 bits
SELECT MAX(t.Pnum) AS Pnum FROM TEMP1 AS t HAVING MAX(t.Pnum) > 38000;

-- FAIL TOO_MANY_PATHS UNLESS EMPTY(TOO_LARGE): the graph has too many paths for the program of paths

-- STEP NEWID: pairing(1 + largest, largest)
SELECT CAST((2 * m.Pnum + 1) * (2 * m.Pnum + 2) DIV 2 + m.Pnum AS BIGINT) AS Id
FROM (SELECT MAX(t.Pnum) AS Pnum FROM TEMP1 AS t) AS m;

-- STEP VINS2: the edge by itself
SELECT n.Id AS Pnum, :a AS St, :b AS End, :a AS IntS, :b AS IntD FROM NEWID AS n;

-- STEP VINS3: the edge, then a path
SELECT (r.Pnum + n.Id) * (r.Pnum + n.Id + 1) DIV 2 + n.Id AS Pnum, :a AS St, r.End, r.IntS, r.IntD
FROM R AS r CROSS JOIN NEWID AS n WHERE r.St = :b
UNION
SELECT (r.Pnum + n.Id) * (r.Pnum + n.Id + 1) DIV 2 + n.Id AS Pnum,
    :a AS St, r.End, :a AS IntS, :b AS IntD
FROM R AS r CROSS JOIN NEWID AS n WHERE r.St = :b;

-- STEP VINS4: a path, then the edge
SELECT (r.Pnum + n.Id) * (r.Pnum + n.Id + 1) DIV 2 + n.Id AS Pnum, r.St, :b AS End, r.IntS, r.IntD
FROM R AS r CROSS JOIN NEWID AS n WHERE r.End = :a
UNION
SELECT (r.Pnum + n.Id) * (r.Pnum + n.Id + 1) DIV 2 + n.Id AS Pnum,
    r.St, :b AS End, :a AS IntS, :b AS IntD
FROM R AS r CROSS JOIN NEWID AS n WHERE r.End = :a;

-- STEP R_ALL: all paths
SELECT r.Pnum, r.St, r.End, r.IntS, r.IntD FROM R AS r
UNION
SELECT v.Pnum, v.St, v.End, v.IntS, v.IntD FROM VINS1 AS v
UNION
SELECT v.Pnum, v.St, v.End, v.IntS, v.IntD FROM VINS2 AS v
UNION
SELECT v.Pnum, v.St, v.End, v.IntS, v.IntD FROM VINS3 AS v
UNION
SELECT v.Pnum, v.St, v.End, v.IntS, v.IntD FROM VINS4 AS v;

-- STEP NM1: the numbers in use
SELECT DISTINCT r.Pnum FROM R_ALL AS r;

-- In print s.Pnum <= r.Pnum, which counts from the other end; the table below it is as here.
-- STEP NM2: each number with those up to it
SELECT s.Pnum AS First, r.Pnum AS Second FROM NM1 AS s JOIN NM1 AS r ON r.Pnum <= s.Pnum;

-- STEP NM3: each number's rank
SELECT n.First, COUNT(n.Second) AS Second FROM NM2 AS n GROUP BY n.First;

-- STEP R_NEW: the paths with small numbers
SELECT n.Second AS Pnum, r.St, r.End, r.IntS, r.IntD FROM R_ALL AS r JOIN NM3 AS n ON n.First = r.Pnum;

-- DELETE FROM R
SELECT r.Pnum, r.St, r.End, r.IntS, r.IntD FROM R AS r
WHERE NOT EXISTS (
    SELECT 1 FROM R_NEW AS n WHERE n.Pnum = r.Pnum AND n.St = r.St AND n.End = r.End
      AND n.IntS = r.IntS AND n.IntD = r.IntD
  );

-- INSERT INTO R
SELECT n.Pnum, n.St, n.End, n.IntS, n.IntD FROM R_NEW AS n
WHERE NOT EXISTS (
    SELECT 1 FROM R AS r WHERE n.Pnum = r.Pnum AND n.St = r.St AND n.End = r.End
      AND n.IntS = r.IntS AND n.IntD = r.IntD
  );
