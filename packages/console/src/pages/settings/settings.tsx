import { SearchField } from '../../parts/search-field.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { place, refine } from '../../shell/place.ts';

type Setting = {
  readonly name: string;
  readonly value: string | null;
  readonly isSet: boolean;
  readonly isSecret: boolean;
  readonly source: keyof typeof SOURCES;
  readonly description: string;
};

const SOURCES = { environment: 'environment', file: 'file in the data folder', default: 'default' } as const;

const COLUMNS: readonly Column<Setting>[] = [
  { title: 'Name', cell: ({ name }) => <Name name={name} />, sort: { up: 'asc', down: 'desc' } },
  { title: 'Value', cell: (setting) => <Value setting={setting} /> },
  { title: 'From', cell: ({ source }) => SOURCES[source] },
  { title: 'Meaning', cell: ({ description }) => <Meaning text={description} /> },
];

export default function Settings({ identity }: PageProps) {
  const { query } = place.value;
  const [q, source, sort] = ['q', 'source', 'sort'].map((name) => query.get(name) ?? '');
  return (
    <>
      <h1>Settings</h1>
      <p>They are changed in the environment of the service, and count from its next start on. Secrets are shown to nobody.</p>
      <search class="filters">
        <SearchField label="Name or meaning" value={q ?? ''} seek={(text) => refine({ q: text })} />
        <label>
          From
          <select value={source} onChange={(event) => refine({ source: event.currentTarget.value })}>
            <option value="">all</option>
            {Object.entries(SOURCES).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </search>
      <Table<Setting>
        identity={identity}
        caption="Settings"
        path="/settings"
        query={{ q, source, sort: sort || 'asc' }}
        columns={COLUMNS}
        rowKey={({ name }) => name}
        onSort={(wanted) => refine({ sort: wanted })}
        empty={<p>No setting fits.</p>}
      />
    </>
  );
}

/** Long names break where their words do. */
function Name({ name }: { readonly name: string }) {
  return (
    <code class="setting">
      {name.split(/(?<=_)/).map((word) => (
        <>
          {word}
          <wbr />
        </>
      ))}
    </code>
  );
}

function Value({ setting: { value, isSet } }: { readonly setting: Setting }) {
  if (value === null) return <span class="fine">{isSet ? 'set' : 'not set'}</span>;
  return <code>{value}</code>;
}

/** The texts of the manual have names between backquotes. */
function Meaning({ text }: { readonly text: string }) {
  return <span>{text.split('`').map((part, index) => (index % 2 === 0 ? part : <code key={`${index}`}>{part}</code>))}</span>;
}
