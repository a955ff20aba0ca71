import { resource } from '../shared/resource.ts';
import { type Client, ClientCreation } from './client.ts';

export const clientResource = resource<Client>()({
  kind: 'client',
  repository: 'clients',
  shown: ['roles', 'allowedPresentationConfigs', 'allowedIssuanceConfigs'],
  silent: ['clientId', 'secretHash', 'secretRevision', 'formerSecretUntil', 'pickUp'],
  edited: ({ pickUp: _pickUp, version: _version, ...client }: Client) => client,
  secrets: { secret: { variable: 'SECRET' } },
  file: {
    path: 'clients/*',
    id: 'clientId',
    body: ClientCreation,
    refersTo: ['presentation-configuration', 'credential-configuration'],
    // The secret itself is nowhere: who imports the client knows it, or gives it another one.
    write: (client: Client) => ({ ...client, secret: 'unknown' }),
  },
});
