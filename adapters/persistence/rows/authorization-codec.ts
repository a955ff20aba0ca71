import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change } from '../../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { Interaction, PendingPresentation, PendingWebStep } from '../../../domain/oauth/interaction.ts';
import { defined } from '../../../domain/shared/defined.ts';
import type { Row } from '../statement.ts';
import { document, type Fields, json, number, optional, sealed, table, text, time } from './columns.ts';

type AuthorizationDocument = Omit<Authorization, 'id' | 'version' | 'expiresAt'>;

type StoredWebStep = Omit<PendingWebStep, 'hasReturned'> & { readonly isReturned: boolean };
type StoredInteraction = Omit<Interaction, 'draft' | 'pending'> & {
  readonly wire: Interaction['draft'];
  readonly pending?: PendingPresentation | StoredWebStep;
};
type StoredDocument = Omit<AuthorizationDocument, 'interaction'> & { readonly interaction?: StoredInteraction };

type StoredAuthorization = Pick<Authorization, 'id' | 'version' | 'expiresAt'> & { readonly document: StoredDocument };

export const AUTHORIZATIONS = table<StoredAuthorization, keyof StoredAuthorization>(
  'authorizations',
  { id: text(), version: number, document: sealed(document()), expiresAt: time },
  {},
);

export function authorizationFields(cipher: Cipher, tenantId: string, authorization: Authorization): Fields {
  const { id, version, expiresAt, interaction, ...properties } = authorization;
  const document = interaction === undefined ? properties : { ...properties, interaction: toStoredInteraction(interaction) };
  return AUTHORIZATIONS.write(cipher, tenantId, { id, version, expiresAt, document });
}

export function readAuthorization(cipher: Cipher, row: Row): Authorization {
  const { document, ...columns } = AUTHORIZATIONS.read(cipher, row);
  const { interaction, ...properties } = document;
  return { ...properties, ...columns, ...(interaction !== undefined && { interaction: readInteraction(interaction) }) };
}

/** The document has the property names of earlier releases: `wire` is the draft, and `isReturned` is `hasReturned`. */
function toStoredInteraction({ draft, pending, ...interaction }: Interaction): StoredInteraction {
  if (pending?.kind !== 'web') return { ...interaction, wire: draft, ...defined({ pending }) };
  const { hasReturned, ...webStep } = pending;
  return { ...interaction, wire: draft, pending: { ...webStep, isReturned: hasReturned } };
}

function readInteraction({ wire, pending, ...interaction }: StoredInteraction): Interaction {
  if (pending?.kind !== 'web') return { ...interaction, draft: wire, ...defined({ pending }) };
  const { isReturned, ...webStep } = pending;
  return { ...interaction, draft: wire, pending: { ...webStep, hasReturned: isReturned } };
}

export const DEFERRED = table<
  DeferredTransaction,
  Exclude<keyof DeferredTransaction, 'credentials' | 'batchId' | 'errorMessage' | 'walletStatuses' | 'authorizedAt'>
>(
  'deferred_transactions',
  {
    id: text(),
    sessionId: text(),
    publicId: text(),
    grantId: optional(text()),
    credentialConfigurationId: text(),
    holderKeys: json(),
    status: text(),
    intervalSeconds: number,
    createdAt: time,
    updatedAt: time,
    expiresAt: time,
  },
  {
    credentials: optional(sealed(json())),
    batchId: optional(text()),
    // The message of a backend may name the person that it did not find.
    errorMessage: optional(sealed(text())),
    walletStatuses: optional(sealed(json())),
    authorizedAt: optional(time),
  },
);

/** Id and time of authorization of a deferred transaction that a change opens. */
export function authorizedTransaction({ opens }: Pick<Change, 'opens'>): Fields | undefined {
  const { id, authorizedAt } = opens?.deferred ?? {};
  return id === undefined || !authorizedAt ? undefined : [id, authorizedAt.getTime()];
}
