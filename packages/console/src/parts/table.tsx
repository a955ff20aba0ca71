import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { askPage, type CallRequest } from '../api/call.ts';
import type { Identity } from '../shell/identities.ts';
import { Problem } from './problem.tsx';

export type Column<Row> = {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Value of the interface's `sort` for the two orders, when it sorts by this. */
  readonly sort?: { readonly up: string; readonly down: string };
};

type Props<Row> = {
  readonly identity: Identity;
  readonly caption: string;
  readonly path: string;
  readonly query: NonNullable<CallRequest['query']>;
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  readonly onSort?: (sort: string) => void;
  readonly empty: ComponentChildren;
  /** Changes when the rows are to be read anew. */
  readonly again?: unknown;
};

type State<Row> = { rows: readonly Row[]; next: string | undefined; isBusy: boolean; fault?: unknown };

/** A list of the interface, page by page: sorted, filtered and cut by the service. */
export function Table<Row>(props: Props<Row>) {
  const { identity, path, query, columns, rowKey, caption, empty, again } = props;
  const [state, setState] = useState<State<Row>>({ rows: [], next: undefined, isBusy: true });
  const asked = JSON.stringify(query);
  useEffect(() => {
    const leave = new AbortController();
    setState((before) => ({ ...before, isBusy: true }));
    askPage<Row>(identity, path, query, leave.signal)
      .then(({ rows, next }) => setState({ rows, next, isBusy: false }))
      .catch((fault: unknown) => {
        if (!leave.signal.aborted) setState({ rows: [], next: undefined, isBusy: false, fault });
      });
    return () => leave.abort();
  }, [identity, path, asked, again]);
  const more = async () => {
    const { rows, next } = state;
    if (next === undefined) return;
    setState({ ...state, isBusy: true });
    try {
      const page = await askPage<Row>(identity, path, { ...query, cursor: next });
      setState({ rows: [...rows, ...page.rows], next: page.next, isBusy: false });
    } catch (fault) {
      setState({ rows, next, isBusy: false, fault });
    }
  };
  // It is there before it says something, or it would not be read out.
  const told = (
    <p role="status" class="hidden">
      {state.isBusy || state.fault !== undefined ? '' : `${caption}: ${state.rows.length} shown`}
    </p>
  );
  if (state.fault !== undefined)
    return (
      <>
        {told}
        <Problem fault={state.fault} />
      </>
    );
  if (state.rows.length === 0 && !state.isBusy)
    return (
      <>
        {told}
        <div class="empty">{empty}</div>
      </>
    );
  return (
    <>
      {told}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users scroll it, too */}
      <section class="scroll" aria-label={caption} tabIndex={0}>
        <table aria-busy={state.isBusy}>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <Head key={column.title} column={column} sorted={String(query['sort'] ?? '')} onSort={props.onSort} />
              ))}
            </tr>
          </thead>
          <tbody>
            {state.rows.map((row) => (
              <tr key={rowKey(row)}>
                {columns.map(({ title, cell }) => (
                  <td key={title} data-title={title}>
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="fine">
        {state.rows.length} shown
        {state.next !== undefined && (
          <button type="button" class="quiet" aria-busy={state.isBusy} onClick={more}>
            Show more
          </button>
        )}
      </p>
    </>
  );
}

type HeadProps<Row> = { readonly column: Column<Row>; readonly sorted: string; readonly onSort: ((sort: string) => void) | undefined };

function Head<Row>({ column: { title, sort }, sorted, onSort }: HeadProps<Row>) {
  if (sort === undefined || onSort === undefined) return <th scope="col">{title}</th>;
  const isUp = sorted === sort.up;
  return (
    <th scope="col" aria-sort={isUp ? 'ascending' : 'descending'}>
      <button type="button" class="sorting" onClick={() => onSort(isUp ? sort.down : sort.up)}>
        {title} <span aria-hidden="true">{isUp ? '▲' : '▼'}</span>
      </button>
    </th>
  );
}
