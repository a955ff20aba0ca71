import type { Macs } from '../../domain/audit/macs.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { type IssuanceConfiguration, withDefaults } from '../../domain/issuance/issuance-configuration.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { RegistrarConfiguration } from '../../domain/registrar/registrar-configuration.ts';
import { canonical } from '../../domain/registrar/registration-certificate-request.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import type { PublishedList } from '../../domain/trust-lists/published-list.ts';
import {
  type PresentationConfiguration,
  withLaterDefaults,
} from '../../domain/verification/configuration.ts';
import type { Cipher } from '../ports/cipher.ts';
import type { EditedKind } from '../ports/store.ts';

/** What is stored of each kind. */
type Stored = {
  readonly tenant: Tenant;
  readonly client: Client;
  readonly 'key-chain': KeyChain;
  readonly 'issuance-configuration': IssuanceConfiguration;
  readonly 'credential-configuration': CredentialConfiguration;
  readonly 'presentation-configuration': PresentationConfiguration;
  readonly 'registrar-configuration': RegistrarConfiguration;
  readonly 'status-list': StatusList;
  readonly 'trust-list': PublishedList;
  readonly 'session-settings': Tenant;
  readonly 'status-list-settings': Tenant;
};

/** The part that administrators edit: what changes by itself, such as a counter or a signature, is left out. */
const EDITED: { readonly [Kind in EditedKind]: (stored: Stored[Kind]) => unknown } = {
  tenant: ({ revision: _revision, ...tenant }) => tenant,
  client: ({ pickUp: _pickUp, version: _version, ...client }) => client,
  'key-chain': (chain) => chain,
  'issuance-configuration': withDefaults,
  'credential-configuration': (configuration) => configuration,
  'presentation-configuration': withLaterDefaults,
  'registrar-configuration': (configuration) => configuration,
  'status-list': ({ id, credentialConfigurationId, keyChainId }) => [
    id,
    credentialConfigurationId,
    keyChainId,
  ],
  'trust-list': ({ id, description, keyChainId, entities, data, createdAt }) => ({
    ...{ id, description, keyChainId, entities, data, createdAt },
  }),
  'session-settings': ({ id, sessionConfig }) => [id, sessionConfig],
  'status-list-settings': ({ id, statusListConfig }) => [id, statusListConfig],
};

/** Purpose of the key of the tags. */
const EDIT_TAG = 'vidimus/edit-tag';

/**
 * Tags that tell whether somebody else edited a thing since it was read: entity tags without their quotes (RFC 9110
 * section 8.8.3). They are made with a key, since documents hold secrets that a plain hash would let readers guess.
 */
export class EditTags {
  readonly #macs: Macs;

  constructor(ports: { readonly cipher: Cipher }) {
    this.#macs = ports.cipher.macs(EDIT_TAG);
  }

  /** @param stored a document of this kind. */
  of(kind: EditedKind, stored: object): string {
    return this.#macs.make(textOf(kind, stored));
  }

  /** Also of a tag that was made before the master secret was changed. */
  isOf(tag: string, kind: EditedKind, stored: object): boolean {
    return this.#macs.check(textOf(kind, stored), tag) === 'genuine';
  }
}

function textOf(kind: EditedKind, stored: object): string {
  const edited = EDITED[kind] as (stored: object) => unknown;
  return `${kind} ${canonical(JSON.parse(JSON.stringify(edited(stored))))}`;
}
