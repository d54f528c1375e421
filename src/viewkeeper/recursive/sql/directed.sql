-- SYSTEM directed: the closure of any directed graph
-- NODES Node, Via, Seed
-- INPUT EDGES (Start NODE, End NODE): the rows that there are now; copies and NULLs are allowed
-- INPUT CHANGES (Start NODE, End NODE, Weight BIGINT): the rows that came (+1) and went (-1)
-- TABLE TC (Start NODE, End NODE): the pairs that a path connects
-- SETTING share = 4: how many ways over deleted edges we follow, by the size of TC
-- SETTING walk = 20: how far we search for another way beside a deleted edge
-- SETTING far = 24: how long paths are found edge by edge, when the closure is built

-- OUTPUT pairs
SELECT t.Start, t.End FROM TC AS t;

-- ON BATCH: the deletions first
-- INCLUDE net_directed.sql

-- IF NOT EMPTY(DELETED)

-- STEP UPWARD: pairs that end where a deleted edge starts or ends
SELECT t.Start, t.End FROM TC AS t
JOIN (SELECT d.Start AS Node FROM DELETED AS d UNION SELECT d.End AS Node FROM DELETED AS d) AS n
  ON n.Node = t.End;

-- STEP INNER_EDGE: deleted edges that were on a cycle
SELECT d.Start, d.End FROM DELETED AS d JOIN UPWARD AS u ON u.Start = d.End AND u.End = d.Start;

-- IF NOT EMPTY(INNER_EDGE): is there another way from start to end, in the same component?

-- STEP MEMBER: the nodes that were on a cycle with the start of such an edge
SELECT t.Start AS Seed, t.End AS Node FROM TC AS t
JOIN (SELECT DISTINCT i.Start FROM INNER_EDGE AS i) AS s ON s.Start = t.Start
JOIN UPWARD AS u ON u.Start = t.End AND u.End = t.Start;

-- STEP FRONT: those that kept edges reach from there, new in this round
SELECT DISTINCT m.Seed, m.Node, 1 AS Round FROM MEMBER AS m
JOIN KEPT AS k ON k.Start = m.Seed AND k.End = m.Node;

-- STEP WALK: all of them
SELECT f.Seed, f.Node FROM FRONT AS f;

-- REPEAT UNTIL EMPTY(FRONT)
-- STEP FRONT: from starts that have not come to all of their ends, and not too far
SELECT DISTINCT f.Seed, k.End AS Node, f.Round + 1 AS Round FROM FRONT AS f
JOIN (
    SELECT DISTINCT i.Start AS Seed FROM INNER_EDGE AS i
    WHERE NOT EXISTS (SELECT 1 FROM WALK AS w WHERE w.Seed = i.Start AND w.Node = i.End)
  ) AS g ON g.Seed = f.Seed
JOIN KEPT AS k ON k.Start = f.Node
JOIN MEMBER AS m ON m.Seed = f.Seed AND m.Node = k.End
WHERE f.Round < :walk
  AND NOT EXISTS (SELECT 1 FROM WALK AS w WHERE w.Seed = f.Seed AND w.Node = k.End);
-- STEP WALK
SELECT w.Seed, w.Node FROM WALK AS w UNION ALL SELECT f.Seed, f.Node FROM FRONT AS f;
-- END
-- END

-- STEP REDUNDANT: deleted edges whose start still reaches their end
SELECT i.Start, i.End FROM INNER_EDGE AS i JOIN WALK AS w ON w.Seed = i.Start AND w.Node = i.End;

-- STEP CUT: the others; those that were on a cycle weigh more, as what is lost is found by long walks
SELECT d.Start, d.End, CASE WHEN i.Start IS NULL THEN 1 ELSE 40 END AS Weight FROM DELETED AS d
LEFT JOIN INNER_EDGE AS i ON i.Start = d.Start AND i.End = d.End
WHERE NOT EXISTS (SELECT 1 FROM REDUNDANT AS r WHERE r.Start = d.Start AND r.End = d.End);

-- IF NOT EMPTY(CUT)
-- INCLUDE closure_delete.sql
-- END
-- END

-- INCLUDE closure_insert.sql

-- ON BUILD
-- INCLUDE closure_build.sql

-- INSERT INTO TC
SELECT a.Start, a.End FROM ALL_PAIRS AS a;
