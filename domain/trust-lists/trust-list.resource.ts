import { resource } from '../shared/resource.ts';
import { findAddressProblems } from './entity-address.ts';
import { configurationOf, TrustListReplacement } from './list-configuration.ts';
import { findSignerProblems } from './list-operator.ts';
import { documentOf, type PublishedList } from './published-list.ts';

/** What another release of the same list brings with it. */
const RELEASE: ReadonlySet<string> = new Set(['sequenceNumber', 'nextUpdate', 'signedBy']);

export const trustListResource = resource<PublishedList>()({
  kind: 'trust-list',
  repository: 'trustLists',
  shown: ['keyChainId', 'sequenceNumber'],
  actionOf: (_before: PublishedList, _after: PublishedList, changed: readonly string[]) =>
    changed.every((member) => RELEASE.has(member)) ? 'renewed' : 'changed',
  edited: ({ id, description, keyChainId, entities, data, createdAt }: PublishedList) => ({
    id,
    description,
    keyChainId,
    entities,
    data,
    createdAt,
  }),
  changing: ['cert', 'sequenceNumber', 'jwt'],
  findings: (list: PublishedList) => [...findSignerProblems(list), ...findAddressProblems(documentOf(list))],
  file: {
    path: 'trust-lists/*',
    id: 'id',
    body: TrustListReplacement,
    refersTo: ['key-chain'],
    write: (list: PublishedList) => configurationOf(list.id, list),
  },
});
