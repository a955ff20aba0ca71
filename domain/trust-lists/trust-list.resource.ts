import { resource } from '../shared/resource.ts';
import { findAddressProblems } from './entity-address.ts';
import { configurationOf, TrustListReplacement } from './list-configuration.ts';
import { findSignerProblems } from './list-operator.ts';
import { documentOf, type PublishedList } from './published-list.ts';

const VERSION_PROPERTIES: ReadonlySet<string> = new Set(['sequenceNumber', 'nextUpdate', 'signedBy']);

export const trustListResource = resource<PublishedList>()({
  kind: 'trust-list',
  repository: 'trustLists',
  auditedValues: ['keyChainId', 'sequenceNumber'],
  actionOf: (_before: PublishedList, _after: PublishedList, changedMembers: readonly string[]) =>
    changedMembers.every((member) => VERSION_PROPERTIES.has(member)) ? 'renewed' : 'changed',
  editablePart: ({ id, description, keyChainId, entities, data, createdAt }: PublishedList) => ({
    id,
    description,
    keyChainId,
    entities,
    data,
    createdAt,
  }),
  volatileProperties: ['cert', 'sequenceNumber', 'jwt'],
  findings: (list: PublishedList) => [...findSignerProblems(list), ...findAddressProblems(documentOf(list))],
  file: {
    path: 'trust-lists/*',
    id: 'id',
    body: TrustListReplacement,
    refersTo: ['key-chain'],
    write: (list: PublishedList) => configurationOf(list.id, list),
  },
});
