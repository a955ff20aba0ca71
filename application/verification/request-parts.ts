import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { encodeTransactionData } from '../../domain/verification/request-object.ts';
import type { Encryption } from '../ports/encryption.ts';
import type { Random } from '../ports/random.ts';
import type { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** OpenID4VP 1.0 section 5.2 requires sufficient entropy; test suites that estimate it from the text underestimate 128 bits at times. */
export function requestNonce(random: Random): string {
  return random.token(256);
}

/**
 * The fields of a request that its response is verified against, for all transports.
 * @param transactionData overrides the configured one.
 */
export function requestParts(
  { random, encryption }: { readonly random: Random; readonly encryption: Encryption },
  configuration: PresentationConfiguration,
  transactionData = configuration.transaction_data,
  nonce = requestNonce(random),
) {
  // HAIP 1.0 section 5: a fresh key for each request
  const keyPair = configuration.responseMode === 'direct_post.jwt' ? encryption.generate() : undefined;
  const entries = (transactionData ?? []) as unknown as JsonObject[];
  return {
    nonce,
    dcqlQuery: configuration.dcql_query as unknown as JsonObject,
    ...(keyPair !== undefined && { encryption: { publicJwk: keyPair.publicJwk as unknown as JsonObject, d: keyPair.d } }),
    ...(entries.length > 0 && {
      transactionData: encodeTransactionData(entries),
      transactionDataObjects: entries,
      ...defined({
        transactionDataElements: configuration.transactionDataElements ?? undefined,
        transactionDataSchemas: configuration.transactionDataSchemas ?? undefined,
      }),
    }),
  };
}

/**
 * The `verifier_info` of a request. A registration certificate comes first, and a request that requires one fails without it.
 * @throws Failure when it is unavailable.
 */
export async function verifierInfo(
  { registrationCertificates }: { readonly registrationCertificates: RegistrationCertificates },
  tenant: TenantConfiguration,
  configuration: PresentationConfiguration,
  chain: KeyChain | undefined,
  now: Date,
): Promise<readonly JsonObject[]> {
  const attached = (configuration.attached ?? []) as unknown as JsonObject[];
  const entry = await registrationCertificates.entryFor(tenant, configuration, chain, now);
  return entry === undefined ? attached : [entry, ...attached];
}

/**
 * Like `verifierInfo`, for clients that do not manage configurations.
 * @throws Failure without the reason.
 */
export async function verifierInfoWithoutReason(...parameters: Parameters<typeof verifierInfo>): Promise<readonly JsonObject[]> {
  try {
    return await verifierInfo(...parameters);
  } catch (error) {
    throw error instanceof Failure ? withoutReason(error) : error;
  }
}

/** Addresses, ids and the state of the registrar are only for managers of configurations, and for the log. */
function withoutReason(cause: Failure): Failure {
  const { code, details } = cause;
  const { retryAfterSeconds } = details;
  const message =
    'the registration certificate of this request cannot be used at present; the log contains the reason under this request id';
  return new Failure(code, { message, ...defined({ retryAfterSeconds }) }, { cause });
}
