-- From INSERTED and the parts to the components as they are now.

-- STEP ENDS: the ends of inserted edges
SELECT i.Start AS Node FROM INSERTED AS i UNION SELECT i.End AS Node FROM INSERTED AS i;

-- STEP HOME: the components of those that have one
SELECT c.Node, c.Comp FROM COMPONENT AS c JOIN ENDS AS e ON e.Node = c.Node;

-- STEP FRESH: the others are a component each, with a number of its own
SELECT e.Node, t.Top + s.N + ROW_NUMBER() OVER (ORDER BY e.Node) AS Comp
FROM ENDS AS e CROSS JOIN TOP AS t CROSS JOIN (SELECT COUNT(*) AS N FROM PART) AS s
WHERE NOT EXISTS (SELECT 1 FROM HOME AS h WHERE h.Node = e.Node);

-- STEP PLACE: where each end is now: in a part, in a component, or by itself
SELECT h.Node, COALESCE(r.Part, h.Comp) AS Label FROM HOME AS h LEFT JOIN REACHED AS r ON r.Node = h.Node
UNION ALL
SELECT f.Node, f.Comp AS Label FROM FRESH AS f;

-- STEP LINKED: which of them an inserted edge connects
SELECT DISTINCT x.Label AS A, y.Label AS B FROM INSERTED AS i
JOIN PLACE AS x ON x.Node = i.Start
JOIN PLACE AS y ON y.Node = i.End
WHERE x.Label <> y.Label;

-- STEP EDGE: what connects parts and components, in both directions
SELECT m.A, m.B FROM MEET AS m
UNION
SELECT o.Comp AS A, o.Part AS B FROM OWNER AS o
UNION
SELECT o.Part AS A, o.Comp AS B FROM OWNER AS o
UNION
SELECT l.A, l.B FROM LINKED AS l
UNION
SELECT l.B AS A, l.A AS B FROM LINKED AS l;

-- STEP ROOT: each part and component in play, at first its own root
SELECT g.Part AS Label, g.Part AS Root FROM GROUPS AS g
UNION
SELECT o.Comp AS Label, o.Comp AS Root FROM OWNER AS o
UNION
SELECT p.Label, p.Label AS Root FROM PLACE AS p;

-- INCLUDE contract.sql

-- STEP NUMBERED: each root's number: that of the largest component it has, so the fewest rows change
SELECT q.Root, q.Label AS Comp
FROM (
    SELECT r.Root, r.Label,
        ROW_NUMBER() OVER (PARTITION BY r.Root ORDER BY COALESCE(c.Nodes, 0) DESC, r.Label) AS Place
    FROM ROOT AS r LEFT JOIN COMPONENTS AS c ON c.Comp = r.Label
  ) AS q
WHERE q.Place = 1;

-- STEP RENAMED: the number of each part and component
SELECT r.Label, n.Comp FROM ROOT AS r JOIN NUMBERED AS n ON n.Root = r.Root;

-- STEP PARTED: nodes of parts, with the old number and the new one
SELECT r.Node, g.Comp AS Was, n.Comp FROM REACHED AS r
JOIN GROUPS AS g ON g.Part = r.Part
JOIN RENAMED AS n ON n.Label = r.Part
WHERE n.Comp <> g.Comp;

-- STEP MERGED: nodes of components that became part of others
SELECT c.Node, c.Comp AS Was, n.Comp FROM COMPONENT AS c
JOIN (SELECT m.Label, m.Comp FROM RENAMED AS m WHERE m.Comp <> m.Label) AS n ON n.Label = c.Comp
WHERE NOT EXISTS (SELECT 1 FROM REACHED AS r WHERE r.Node = c.Node);

-- DELETE FROM COMPONENT
SELECT p.Node, p.Was AS Comp FROM PARTED AS p
UNION
SELECT m.Node, m.Was AS Comp FROM MERGED AS m
UNION
SELECT p.Node, p.Comp FROM PART AS p JOIN VANISHED AS v ON v.Node = p.Node;

-- INSERT INTO COMPONENT
SELECT q.Node, q.Comp
FROM (
    SELECT p.Node, p.Comp FROM PARTED AS p
    UNION ALL
    SELECT m.Node, m.Comp FROM MERGED AS m
    UNION ALL
    SELECT f.Node, n.Comp FROM FRESH AS f JOIN RENAMED AS n ON n.Label = f.Comp
  ) AS q
WHERE NOT EXISTS (SELECT 1 FROM VANISHED AS v WHERE v.Node = q.Node);

-- STEP TOUCHED: the components whose nodes changed
SELECT g.Comp FROM COMPONENT_GONE AS g UNION SELECT c.Comp FROM COMPONENT_COME AS c;

-- STEP STANDING: what they are now
SELECT q.Comp, MIN(q.Node) AS Smallest, COUNT(*) AS Nodes
FROM (
    SELECT c.Node, c.Comp FROM COMPONENT AS c JOIN TOUCHED AS t ON t.Comp = c.Comp
    WHERE NOT EXISTS (SELECT 1 FROM COMPONENT_GONE AS g WHERE g.Node = c.Node AND g.Comp = c.Comp)
    UNION ALL
    SELECT i.Node, i.Comp FROM COMPONENT_COME AS i
  ) AS q
GROUP BY q.Comp;

-- DELETE FROM COMPONENTS
SELECT c.Comp, c.Smallest, c.Nodes FROM COMPONENTS AS c JOIN TOUCHED AS t ON t.Comp = c.Comp;

-- INSERT INTO COMPONENTS
SELECT s.Comp, s.Smallest, s.Nodes FROM STANDING AS s;
