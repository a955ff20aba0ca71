import type { Cipher } from '../../../application/ports/cipher.ts';
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
  const { id, version, expiresAt, ...rest } = authorization;
  return AUTHORIZATIONS.write(cipher, tenantId, { id, version, expiresAt, document: rest });
}

export function readAuthorization(cipher: Cipher, row: Row): Authorization {
  const { document: rest, ...columns } = AUTHORIZATIONS.read(cipher, row);
  return { ...rest, ...columns };
}

export const DEFERRED = table<
  DeferredTransaction,
  Exclude<keyof DeferredTransaction, 'credentials' | 'batchId' | 'errorMessage' | 'walletStatuses'>
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
    // Backends write into it whom they did not find.
    errorMessage: optional(sealed(text())),
    walletStatuses: optional(sealed(json())),
  },
);
