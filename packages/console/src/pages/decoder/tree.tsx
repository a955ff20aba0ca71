/** Levels that are open at first. */
const OPEN = 3;
const [DEEPEST, LONGEST] = [40, 500];

type Props = { readonly value: unknown; readonly depth?: number };

/** JSON as a tree whose branches can be closed. */
export function Tree({ value, depth = 0 }: Props) {
  if (typeof value !== 'object' || value === null) return <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>;
  if (depth === DEEPEST) return <code>… deeper than {DEEPEST} levels</code>;
  const all = Object.entries(value);
  const entries = all.slice(0, LONGEST);
  if (entries.length === 0) return <code>{Array.isArray(value) ? '[]' : '{}'}</code>;
  return (
    <ul class="tree">
      {entries.map(([name, inner]) => (
        <li key={name}>
          {typeof inner === 'object' && inner !== null ? (
            <details open={depth < OPEN}>
              <summary>{name}</summary>
              <Tree value={inner} depth={depth + 1} />
            </details>
          ) : (
            <>
              <span class="member">{name}</span> <Tree value={inner} />
              {isTime(name, inner) && <span class="fine"> {new Date(inner * 1000).toLocaleString()}</span>}
            </>
          )}
        </li>
      ))}
      {all.length > LONGEST && <li class="fine">and {all.length - LONGEST} more</li>}
    </ul>
  );
}

function isTime(name: string, value: unknown): value is number {
  return ['iat', 'exp', 'nbf'].includes(name) && typeof value === 'number' && Math.abs(value) < 8e12;
}
