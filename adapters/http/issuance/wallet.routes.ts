import { z } from 'zod';
import { CreateNonce } from '../../../application/issuance/create-nonce.ts';
import { FetchOffer } from '../../../application/issuance/fetch-offer.ts';
import { IssueCredential, type WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { ReceiveNotification } from '../../../application/issuance/receive-notification.ts';
import { RetrieveDeferred } from '../../../application/issuance/retrieve-deferred.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { headerValues } from '../input/header-values.ts';
import { CREDENTIAL_JSON, DEFERRED_JSON, NOTIFICATION_JSON } from '../oauth/described-parameters.ts';
import { dpopNonceHeader } from '../oauth/server-endpoints.ts';
import { family, type RawRequest, type Route, reply, route } from '../route.ts';
import { Document, TenantPath } from '../shapes.ts';

const tag = 'Wallet: issuance';
/** The body may be encrypted, so the use case parses it. */
const authorized = {
  method: 'post',
  tag,
  surface: 'vci',
  access: 'wallet',
  params: TenantPath,
  body: Document,
  bodyKind: 'unread',
} as const;
const open = { tag, surface: 'vci', access: 'public', rateLimit: { group: 'nonce', perAddress: true } } as const;

const DeferralView = z.object({ transaction_id: z.string(), interval: z.number() });
const CredentialsView = z.object({ credentials: z.array(z.object({ credential: z.string() })), notification_id: z.string() });

const USE_CASES = {
  fetchOffer: FetchOffer,
  createNonce: CreateNonce,
  issueCredential: IssueCredential,
  retrieveDeferred: RetrieveDeferred,
  receiveNotification: ReceiveNotification,
};

/** Endpoints that wallets call to get a credential (OpenID4VCI 1.0). */
export const issuanceWalletRoutes = family(USE_CASES, (useCases) => [
  route({
    ...authorized,
    path: '/:tenant/credential',
    operationId: 'requestCredential',
    summary: 'Issue a credential (OpenID4VCI 1.0 section 8)',
    description: 'Request and response may be encrypted (section 10).',
    described: { json: CREDENTIAL_JSON },
    example: { credential_configuration_id: 'pid', proofs: { jwt: ['<proof>'] } },
    bodyLimit: 512 * 1024,
    responses: { 200: CredentialsView, 202: DeferralView },
    handle: ({ params, request }) => useCases.issueCredential.execute(params.tenant, walletRequest(request)),
  }),
  ...deferredRoutes(useCases),
  route({
    ...authorized,
    path: '/:tenant/notification',
    operationId: 'notifyIssuer',
    summary: 'Notify the issuer about a credential (OpenID4VCI 1.0 section 11)',
    described: { json: NOTIFICATION_JSON },
    example: { notification_id: '<notification>', event: 'credential_accepted' },
    bodyLimit: 16 * 1024,
    responses: { 204: 'Noted' },
    async handle({ params, request }) {
      await useCases.receiveNotification.execute(params.tenant, walletRequest(request));
      return { status: 204, empty: true };
    },
  }),
  route({
    ...open,
    method: 'post',
    path: '/:tenant/nonce',
    operationId: 'createNonce',
    summary: 'Get a nonce for proofs (OpenID4VCI 1.0 section 7)',
    description: 'The header `DPoP-Nonce` has the nonce for the DPoP proof of the credential request.',
    params: TenantPath,
    responses: { 200: z.object({ c_nonce: z.string() }) },
    async handle({ params }) {
      const { cNonce, dpopNonce } = await useCases.createNonce.execute(params.tenant);
      return reply(200, { c_nonce: cNonce }, dpopNonceHeader(dpopNonce));
    },
  }),
  route({
    ...open,
    method: 'get',
    path: '/:tenant/credential-offer/:offerId',
    operationId: 'fetchCredentialOffer',
    summary: 'Fetch a credential offer (OpenID4VCI 1.0 section 4.1.3)',
    params: TenantPath.extend({ offerId: z.string().max(64) }),
    responses: { 200: Document },
    handle: async ({ params }) => reply(200, await useCases.fetchOffer.execute(params.tenant, params.offerId as PublicId)),
  }),
]);

/** The endpoint of OpenID4VCI 1.0, and an older one at the root that takes the tenant from the access token. */
function deferredRoutes({ retrieveDeferred }: PortsOf<typeof USE_CASES>): Route[] {
  return [
    route({
      ...authorized,
      path: '/:tenant/deferred_credential',
      operationId: 'requestDeferredCredential',
      summary: 'Fetch a deferred credential (OpenID4VCI 1.0 section 9)',
      description: 'Request and response may be encrypted (section 10).',
      described: { json: DEFERRED_JSON },
      example: { transaction_id: '<transaction>' },
      responses: { 200: CredentialsView, 202: DeferralView },
      handle: ({ params, request }) => retrieveDeferred.execute(params.tenant, walletRequest(request), { form: 'post' }),
    }),
    route({
      tag,
      surface: 'vci',
      access: 'wallet',
      method: 'get',
      path: '/deferred_credential',
      operationId: 'pollDeferredCredential',
      exampleParameters: { transaction_id: '<transaction>' },
      summary: 'Fetch a deferred credential by the protocol before OpenID4VCI 1.0',
      description: 'Answers 400 `issuance_pending` with an `interval` until the credential is ready.',
      query: z.object({ transaction_id: z.string().max(100).optional() }),
      responses: { 200: CredentialsView.extend({ credential: z.string() }), 404: 'The access token belongs to no tenant of this service' },
      handle({ query, request }) {
        const wallet = walletRequest(request);
        const form = { form: 'get', transactionId: query.transaction_id } as const;
        return retrieveDeferred.execute(tenantOfToken(wallet.wallet.authorization), wallet, form);
      },
    }),
  ];
}

function walletRequest(request: RawRequest): WalletRequest {
  const [authorization, ...surplus] = headerValues(request, 'authorization');
  // RFC 6750 section 3.1: more than one way to send a token
  if (surplus.length > 0) throw new Failure('invalid_request', 'more than one Authorization header');
  return {
    wallet: { authorization, dpop: headerValues(request, 'dpop') },
    contentType: request.headers['content-type'],
    body: request.bytes,
    requestId: request.requestId,
  };
}

/**
 * Takes the tenant from the last segment of the audience, unverified: it only selects the tenant, which then verifies the token.
 * @throws Failure `missing_token`, `invalid_token`.
 */
function tenantOfToken(authorization: string | undefined): TenantId {
  if (authorization === undefined) throw new Failure('missing_token');
  const token = parseCompactJws(authorization.trim().split(/ +/)[1] ?? '');
  const audience = [token?.payload['aud'] ?? []].flat()[0];
  const tenant = typeof audience === 'string' ? audience.split('/').at(-1) : undefined;
  if (tenant === undefined) throw new Failure('invalid_token', 'the access token is invalid or expired');
  return tenant as TenantId;
}
