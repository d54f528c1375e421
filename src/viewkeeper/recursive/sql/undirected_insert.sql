-- From INSERTED and SPLIT to MOVES, the nodes whose component has another number now.

-- IF NOT EMPTY(INSERTED)

-- STEP ENDS: the ends of inserted edges
SELECT i.Start AS Node FROM INSERTED AS i UNION SELECT i.End AS Node FROM INSERTED AS i;

-- STEP HOME: the components of those that have one
SELECT c.Node, c.Comp FROM COMPONENT AS c JOIN ENDS AS e ON e.Node = c.Node;

-- STEP FRESH: the others are a component each
SELECT e.Node, t.Top + s.N + ROW_NUMBER() OVER (ORDER BY e.Node) AS Label
FROM ENDS AS e CROSS JOIN TOP AS t CROSS JOIN (SELECT COUNT(*) AS N FROM NUMBER) AS s
WHERE NOT EXISTS (SELECT 1 FROM HOME AS h WHERE h.Node = e.Node);

-- STEP PLACE: where each end is now: in a part that was cut off, in a component, or by itself
SELECT h.Node, COALESCE(s.Label, h.Comp) AS Label FROM HOME AS h LEFT JOIN SPLIT AS s ON s.Node = h.Node
UNION ALL
SELECT f.Node, f.Label FROM FRESH AS f;

-- STEP LINKED: which of them an inserted edge connects
SELECT DISTINCT x.Label AS A, y.Label AS B FROM INSERTED AS i
JOIN PLACE AS x ON x.Node = i.Start
JOIN PLACE AS y ON y.Node = i.End
WHERE x.Label <> y.Label;

-- IF NOT EMPTY(LINKED)

-- STEP EDGE: in both directions
SELECT l.A, l.B FROM LINKED AS l UNION SELECT l.B AS A, l.A AS B FROM LINKED AS l;

-- STEP ROOT: each by itself
SELECT DISTINCT e.A AS Label, e.A AS Root FROM EDGE AS e;

-- INCLUDE contract.sql

-- STEP RENAMED: all that are connected get the number of the largest, so that the fewest rows change
SELECT r.Label, n.Label AS Comp FROM ROOT AS r
JOIN (
    SELECT q.Root, q.Label,
        ROW_NUMBER() OVER (PARTITION BY q.Root ORDER BY COALESCE(c.Nodes, 0) DESC, q.Label) AS Place
    FROM ROOT AS q LEFT JOIN COMPONENTS AS c ON c.Comp = q.Label
  ) AS n ON n.Root = r.Root
WHERE n.Place = 1;

-- STEP MERGED: the nodes of components that get another number
SELECT c.Node, c.Comp AS Was, n.Comp FROM COMPONENT AS c
JOIN (SELECT m.Label, m.Comp FROM RENAMED AS m WHERE m.Comp <> m.Label) AS n ON n.Label = c.Comp
WHERE NOT EXISTS (SELECT 1 FROM SPLIT AS s WHERE s.Node = c.Node);

-- END
-- END

-- STEP MOVES: the number each node had, if any, and the one it has now, if any
SELECT m.Node, m.Was, m.Comp
FROM (
    SELECT s.Node, s.Was, COALESCE(r.Comp, s.Label) AS Comp FROM SPLIT AS s
    LEFT JOIN RENAMED AS r ON r.Label = s.Label
    UNION ALL
    SELECT g.Node, g.Was, g.Comp FROM MERGED AS g
    UNION ALL
    SELECT f.Node, CAST(NULL AS BIGINT) AS Was, COALESCE(r.Comp, f.Label) AS Comp FROM FRESH AS f
    LEFT JOIN RENAMED AS r ON r.Label = f.Label
  ) AS m
WHERE (m.Was IS NULL OR m.Was <> m.Comp)
  AND NOT EXISTS (SELECT 1 FROM VANISHED AS v WHERE v.Node = m.Node)
UNION ALL
SELECT v.Node, v.Comp AS Was, CAST(NULL AS BIGINT) AS Comp FROM VANISHED AS v;

-- IF NOT EMPTY(MOVES)

-- DELETE FROM COMPONENT
SELECT m.Node, m.Was AS Comp FROM MOVES AS m WHERE m.Was IS NOT NULL;

-- INSERT INTO COMPONENT
SELECT m.Node, m.Comp FROM MOVES AS m WHERE m.Comp IS NOT NULL;

-- STEP TOUCHED: the components whose nodes changed
SELECT m.Was AS Comp FROM MOVES AS m WHERE m.Was IS NOT NULL
UNION
SELECT m.Comp FROM MOVES AS m WHERE m.Comp IS NOT NULL;

-- DELETE FROM COMPONENTS
SELECT c.Comp, c.Smallest, c.Nodes FROM COMPONENTS AS c JOIN TOUCHED AS t ON t.Comp = c.Comp;

-- INSERT INTO COMPONENTS
SELECT q.Comp, MIN(q.Node) AS Smallest, COUNT(*) AS Nodes
FROM (
    SELECT c.Node, c.Comp FROM COMPONENT AS c JOIN TOUCHED AS t ON t.Comp = c.Comp
    WHERE NOT EXISTS (SELECT 1 FROM MOVES AS m WHERE m.Node = c.Node)
    UNION ALL
    SELECT m.Node, m.Comp FROM MOVES AS m WHERE m.Comp IS NOT NULL
  ) AS q
GROUP BY q.Comp;

-- END
