import type { ComponentChildren } from 'preact';
import { SearchField } from '../../parts/search-field.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import type { PageProps } from '../../shell/page-props.ts';
import { place, refine } from '../../shell/place.ts';
import { ACTIONS, KINDS } from './audit-words.ts';
import { Detail } from './detail.tsx';
import type { Entry } from './entry.ts';
import { Verify } from './verify.tsx';

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'Number', cell: ({ sequence }) => sequence, sort: { up: 'asc', down: 'desc' } },
  { title: 'When', cell: ({ at }) => <Time at={at} /> },
  { title: 'Who', cell: ({ actor }) => <code>{actor}</code> },
  { title: 'Did', cell: ({ action }) => action },
  { title: 'What', cell: ({ kind, target }) => <What kind={kind} target={target} /> },
  { title: 'In full', cell: (entry) => <Detail entry={entry} /> },
];
const NAMES = ['actor', 'kind', 'action', 'target', 'since', 'sort', 'tenant'] as const;

export default function Audit({ identity }: PageProps) {
  const asked = Object.fromEntries(NAMES.map((name) => [name, place.value.query.get(name) ?? '']));
  const query = { ...asked, since: startOf(asked['since']), sort: asked['sort'] || 'desc', limit: 50 };
  const sought = (name: (typeof NAMES)[number]) => ({ value: asked[name] ?? '', seek: (text: string) => refine({ [name]: text }) });
  return (
    <>
      <h1>Audit log</h1>
      <Verify identity={identity} tenant={asked['tenant'] ?? ''} />
      <search class="filters">
        {identity.tenantId === undefined && <Tenant identity={identity} chosen={asked['tenant'] ?? ''} />}
        <SearchField label="Who" {...sought('actor')} />
        <Choice name="action" label="Did" chosen={asked['action'] ?? ''} of={ACTIONS} />
        <Choice name="kind" label="Kind" chosen={asked['kind'] ?? ''} of={KINDS} />
        <SearchField label="Id of the changed object" {...sought('target')} />
        <label>
          Since
          <input type="date" value={asked['since'] ?? ''} onChange={(event) => refine({ since: event.currentTarget.value })} />
        </label>
      </search>
      <Table<Entry>
        identity={identity}
        caption="Audit log"
        path="/audit-log"
        query={query}
        columns={COLUMNS}
        rowKey={({ sequence }) => String(sequence)}
        onSort={(sort) => refine({ sort })}
        empty={<p>Every administrative change leaves an entry here. There is none that fits.</p>}
      />
    </>
  );
}

type ChoiceProps = {
  readonly name: string;
  readonly label: string;
  readonly chosen: string;
  readonly of: readonly string[];
  readonly none?: ComponentChildren;
};

function Choice({ name, label, chosen, of, none = 'all' }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={chosen} onChange={(event) => refine({ [name]: event.currentTarget.value })}>
        <option value="">{none}</option>
        {of.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

function Tenant({ identity, chosen }: Pick<PageProps, 'identity'> & { readonly chosen: string }) {
  const { value = [] } = useAsked<readonly { readonly id: string }[]>(identity, '/tenant');
  const ids = value.map(({ id }) => id);
  return <Choice name="tenant" label="Log of" chosen={chosen} of={ids} none="the service" />;
}

function What({ kind, target }: Pick<Entry, 'kind' | 'target'>) {
  return (
    <span>
      {kind} <code>{target}</code>
    </span>
  );
}

/** A day of the person's calendar, as the interface asks for it. */
function startOf(day: string | undefined): string {
  const start = day === undefined || day === '' ? undefined : new Date(`${day}T00:00`);
  return start === undefined || Number.isNaN(start.getTime()) ? '' : start.toISOString();
}
