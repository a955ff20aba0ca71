import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change } from '../../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { Row } from '../statement.ts';
import { document, type Fields, json, number, optional, sealed, table, text, time } from './columns.ts';

type StoredAuthorization = Pick<Authorization, 'id' | 'version' | 'expiresAt'> & {
  readonly document: Omit<Authorization, 'id' | 'version' | 'expiresAt'>;
};

export const AUTHORIZATIONS = table<StoredAuthorization, keyof StoredAuthorization>(
  'authorizations',
  { id: text(), version: number, document: sealed(document()), expiresAt: time },
  {},
);

export function authorizationFields(cipher: Cipher, tenantId: string, authorization: Authorization): Fields {
  const { id, version, expiresAt, ...document } = authorization;
  return AUTHORIZATIONS.write(cipher, tenantId, { id, version, expiresAt, document });
}

export function readAuthorization(cipher: Cipher, row: Row): Authorization {
  const { document: properties, ...columns } = AUTHORIZATIONS.read(cipher, row);
  return { ...properties, ...columns };
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
