import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { assertFreeClaims } from '../../domain/issuance/offer.ts';
import type { ClaimsSource, IssuanceRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { SchemaFault, SchemaValidator } from '../ports/schema-validator.ts';
import type { TenantView } from './tenant-views.ts';

/**
 * Where the claims of a credential come from: inline in the offer, a webhook named in the offer, the webhook of
 * the configuration, or its static claims; the first that exists.
 */
export function claimsSource(request: IssuanceRequest, configuration: CredentialConfiguration): ClaimsSource {
  const named = Object.hasOwn(request.credentialClaims, configuration.id)
    ? request.credentialClaims[configuration.id]
    : undefined;
  if (named !== undefined) return named;
  const { claimsWebhook, claims } = configuration;
  if (claimsWebhook !== null && claimsWebhook !== undefined)
    return { type: 'webhook', webhook: claimsWebhook };
  return { type: 'inline', claims: claims ?? {} };
}

/** What the configuration's schema finds wrong with claims; nothing without a schema. */
export function claimsFaults(
  validator: SchemaValidator,
  view: TenantView,
  configuration: CredentialConfiguration,
  claims: JsonObject,
): readonly SchemaFault[] {
  const { schema } = configuration;
  if (schema === null || schema === undefined) return [];
  return view.derive(`schema/${configuration.id}`, () => validator.compile(schema))(claims);
}

/**
 * Claims that may be signed: they fit the schema and override nothing of the protocol.
 * @throws Failure `credential_request_denied`; its cause tells the operator where the fault is.
 */
export function assertIssuable(
  validator: SchemaValidator,
  view: TenantView,
  configuration: CredentialConfiguration,
  claims: JsonObject,
): void {
  const [fault] = claimsFaults(validator, view, configuration, claims);
  if (fault !== undefined)
    throw denied(`the claims do not fit the schema: ${fault.path || 'the document'} ${fault.message}`);
  try {
    assertFreeClaims(claims, 'claims');
  } catch (error) {
    throw denied(error instanceof Error ? error.message : 'the claims are not valid');
  }
}

export function hasFreeNames(claims: JsonObject): boolean {
  try {
    assertFreeClaims(claims, 'claims');
    return true;
  } catch {
    return false;
  }
}

/** The wallet learns that it gets nothing, the operator why. */
export function denied(reason: string): Failure {
  return new Failure('credential_request_denied', 'the issuer cannot issue this credential', {
    cause: new Error(reason),
  });
}
