import { useState } from 'preact/hooks';
import { SearchField } from '../../parts/search-field.tsx';
import type { PageProps } from '../../shell/page-props.ts';
import { place, refine } from '../../shell/place.ts';
import { Authorities } from './authorities.tsx';
import { FollowedLists } from './followed-lists.tsx';
import { ImportAuthorities } from './import-authorities.tsx';
import { Resting } from './resting-things.tsx';

const KINDS = [...['authority', 'key-chain', 'anchor', 'list-signer', 'followed-list', 'published-list'], 'registration-certificate'];

export default function Trust({ identity }: PageProps) {
  const { query } = place.value;
  const [turn, setTurn] = useState(0);
  const [kind, words] = [query.get('kind') ?? '', query.get('q') ?? ''];
  return (
    <>
      <h1>Trust</h1>
      <p>On the left stands what trust rests on, on the right what rests on it. Choose one on the left to see what fails when it ends.</p>
      <search class="filters">
        <label>
          Kind
          <select value={kind} onChange={(event) => refine({ kind: event.currentTarget.value })}>
            <option value="">all</option>
            {KINDS.map((kindName) => (
              <option key={kindName} value={kindName}>
                {kindName.replaceAll('-', ' ')}
              </option>
            ))}
          </select>
        </label>
        <SearchField label="Called, or used by" value={words} seek={(text) => refine({ q: text })} />
      </search>
      <Resting key={`${kind} ${words}`} identity={identity} kind={kind} words={words} since={turn} />
      {identity.roles.includes('presentation:manage') && (
        <ImportAuthorities identity={identity} taught={() => setTurn((before) => before + 1)} />
      )}
      <FollowedLists identity={identity} />
      <Authorities identity={identity} />
    </>
  );
}
