import { resource } from '../shared/resource.ts';
import { type Client, ClientCreation } from './client.ts';

export const clientResource = resource<Client>()({
  kind: 'client',
  repository: 'clients',
  auditedValues: ['roles', 'allowedPresentationConfigs', 'allowedIssuanceConfigs'],
  unaudited: ['clientId', 'secretHash', 'secretRevision', 'formerSecretUntil', 'pickUp'],
  editablePart: ({ pickUp: _pickUp, version: _version, ...client }: Client) => client,
  secrets: { secret: { variable: 'SECRET' } },
  file: {
    path: 'clients/*',
    id: 'clientId',
    body: ClientCreation,
    refersTo: ['presentation-configuration', 'credential-configuration'],
    // The secret is not stored: the importer sets it.
    write: (client: Client) => ({ ...client, secret: 'unknown' }),
  },
});
