import type { Route } from '../../adapters/http/route.ts';
import type { WalletArtefacts } from './populated.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, keyProof, newKey, PRE_AUTHORIZED, type RawWallet } from './raw-wallet.ts';
import { nameOf } from './requests.ts';
import type { CallOptions } from './test-service.ts';

type WalletCall = CallOptions & { readonly path: string };

/** A call to the tenant of this wallet with these artefacts. */
type WalletRecipe = (wallet: RawWallet, artefacts: WalletArtefacts) => WalletCall;

const document =
  (path: string): WalletRecipe =>
  ({ tenant }) => ({ path: path.replace(':tenant', tenant) });

/** Recipes for every public route of a tenant. A missing route fails the matrix tests. */
const RECIPES: Readonly<Record<string, WalletRecipe>> = {
  'POST /:tenant/token': ({ tenant, issuer, dpopKey }, { code }) => ({
    path: `/${tenant}/token`,
    form: { grant_type: PRE_AUTHORIZED, 'pre-authorized_code': code },
    headers: { DPoP: dpopProof(dpopKey, `${issuer}/token`) },
  }),
  'POST /:tenant/credential': (wallet, { accessToken, nonce, vctId }) => ({
    path: `/${wallet.tenant}/credential`,
    headers: wallet.authorization(accessToken),
    json: { credential_configuration_id: vctId, proofs: { jwt: [keyProof(newKey(), wallet.issuer, nonce)] } },
  }),
  'POST /:tenant/nonce': document('/:tenant/nonce'),
  'GET /:tenant/presented': document('/:tenant/presented'),
  'POST /:tenant/par': ({ tenant, issuer }, { offerId }) => ({
    path: `/${tenant}/par`,
    form: { ...AUTHORIZATION_REQUEST, issuer_state: offerId, resource: issuer },
  }),
  'GET /:tenant/authorize': ({ tenant }, { requestUri }) => ({
    path: `/${tenant}/authorize?client_id=${encodeURIComponent(CLIENT_ID)}&request_uri=${encodeURIComponent(requestUri)}`,
  }),
  'POST /:tenant/authorize': ({ tenant }, { requestUri }) => ({
    path: `/${tenant}/authorize`,
    form: { client_id: CLIENT_ID, request_uri: requestUri, decision: 'approve', decision_token: 'none' },
  }),
  'POST /:tenant/interactive-authorization': ({ tenant }, { offerId }) => ({
    path: `/${tenant}/interactive-authorization`,
    form: { ...AUTHORIZATION_REQUEST, issuer_state: offerId, interaction_types_supported: 'urn:openid:dcp:ia:openid4vp_presentation' },
  }),
  'GET /:tenant/interactive-authorization/return': ({ tenant }) => ({
    path: `/${tenant}/interactive-authorization/return?auth_session=guessed`,
  }),
  'POST /:tenant/deferred_credential': (wallet, { accessToken, transactionId }) => ({
    path: `/${wallet.tenant}/deferred_credential`,
    headers: wallet.authorization(accessToken, { path: 'deferred_credential' }),
    json: { transaction_id: transactionId },
  }),
  'POST /:tenant/notification': (wallet, { accessToken, notificationId }) => ({
    path: `/${wallet.tenant}/notification`,
    headers: wallet.authorization(accessToken, { path: 'notification' }),
    json: { notification_id: notificationId, event: 'credential_accepted' },
  }),
  'POST /:tenant/challenge': document('/:tenant/challenge'),
  'POST /:tenant/chained-as/par': ({ tenant, issuer }, { offerId }) => ({
    path: `/${tenant}/chained-as/par`,
    form: { ...AUTHORIZATION_REQUEST, issuer_state: offerId, resource: issuer },
  }),
  'GET /:tenant/chained-as/authorize': ({ tenant }, { chainedRequestUri }) => ({
    path: `/${tenant}/chained-as/authorize?client_id=${encodeURIComponent(CLIENT_ID)}&request_uri=${encodeURIComponent(chainedRequestUri)}`,
  }),
  'GET /:tenant/chained-as/callback': ({ tenant }, { loginState, loginCookie }) => ({
    path: `/${tenant}/chained-as/callback?code=of-the-provider&state=${loginState}`,
    headers: { Cookie: loginCookie },
  }),
  'POST /:tenant/chained-as/confirm': ({ tenant }, { confirmation, confirmationCookie }) => ({
    path: `/${tenant}/chained-as/confirm`,
    form: { confirmation, decision: 'approve' },
    headers: { Cookie: confirmationCookie },
  }),
  'POST /:tenant/chained-as/token': ({ tenant, issuer, dpopKey }, { code }) => ({
    path: `/${tenant}/chained-as/token`,
    form: { grant_type: 'authorization_code', code, client_id: CLIENT_ID },
    headers: { DPoP: dpopProof(dpopKey, `${issuer}/chained-as/token`) },
  }),
  'POST /:tenant/chained-as/challenge': document('/:tenant/chained-as/challenge'),
  'GET /:tenant/chained-as/.well-known/jwks.json': document('/:tenant/chained-as/.well-known/jwks.json'),
  'GET /:tenant/chained-as/.well-known/oauth-authorization-server': document('/:tenant/chained-as/.well-known/oauth-authorization-server'),
  'GET /.well-known/oauth-authorization-server/:tenant/chained-as': document('/.well-known/oauth-authorization-server/:tenant/chained-as'),
  'GET /:tenant/credential-offer/:offerId': ({ tenant }, { offerId }) => ({ path: `/${tenant}/credential-offer/${offerId}` }),
  'GET /:tenant/offer/:pageId': ({ tenant }, { pageId }) => ({ path: `/${tenant}/offer/${pageId}` }),
  'GET /.well-known/openid-credential-issuer/:tenant': document('/.well-known/openid-credential-issuer/:tenant'),
  'GET /:tenant/.well-known/openid-credential-issuer': document('/:tenant/.well-known/openid-credential-issuer'),
  'GET /.well-known/oauth-authorization-server/:tenant': document('/.well-known/oauth-authorization-server/:tenant'),
  'GET /:tenant/.well-known/oauth-authorization-server': document('/:tenant/.well-known/oauth-authorization-server'),
  'GET /:tenant/.well-known/jwks.json': document('/:tenant/.well-known/jwks.json'),
  'GET /:tenant/vct/:id': ({ tenant }, { vctId }) => ({ path: `/${tenant}/vct/${vctId}` }),
  'GET /:tenant/schema/:id': ({ tenant }, { vctId }) => ({ path: `/${tenant}/schema/${vctId}` }),
  'GET /:tenant/request/:requestId': ({ tenant }, { requestId }) => ({ path: `/${tenant}/request/${requestId}` }),
  'POST /:tenant/request/:requestId': ({ tenant }, { requestId }) => ({
    path: `/${tenant}/request/${requestId}`,
    form: { wallet_nonce: 'a-nonce-of-the-wallet' },
  }),
  'GET /:tenant/request/:requestId/cross-device': ({ tenant }, { requestId }) => ({ path: `/${tenant}/request/${requestId}/cross-device` }),
  'POST /:tenant/request/:requestId/cross-device': ({ tenant }, { requestId }) => ({
    path: `/${tenant}/request/${requestId}/cross-device`,
    form: { wallet_nonce: 'a-nonce-of-the-wallet' },
  }),
  'POST /:tenant/response/:requestId': ({ tenant }, { requestId }) => ({
    path: `/${tenant}/response/${requestId}`,
    form: { state: 'guessed', error: 'access_denied' },
  }),
  'GET /:tenant/dc-api/:requestId': ({ tenant }, { dcApiId }) => ({ path: `/${tenant}/dc-api/${dcApiId}` }),
  'POST /:tenant/dc-api/:requestId': ({ tenant }, { dcApiId }) => ({
    path: `/${tenant}/dc-api/${dcApiId}`,
    json: { error: 'access_denied' },
  }),
  'GET /:tenant/status-list/:listId': ({ tenant }, { listId }) => ({ path: `/${tenant}/status-list/${listId}` }),
  'GET /:tenant/status-lists': document('/:tenant/status-lists'),
  'GET /:tenant/trust-list/:id': ({ tenant }, { trustListId }) => ({ path: `/${tenant}/trust-list/${trustListId}` }),
  'GET /:tenant/crl/:id': ({ tenant }, { authorityId }) => ({ path: `/${tenant}/crl/${authorityId}` }),
  'GET /:tenant/ca/:id': ({ tenant }, { authorityId }) => ({ path: `/${tenant}/ca/${authorityId}` }),
};

export const isTenantRoute = ({ path }: Route) => path.includes('/:tenant');

/** These stay published when a tenant is suspended. */
export const isListRoute = ({ path }: Route) => /^\/:tenant\/(?:(?:status|trust)-list|(?:crl|ca)\/)/.test(path);

export function walletRecipeOf(route: Route): WalletRecipe {
  const recipe = RECIPES[nameOf(route)];
  if (recipe === undefined) throw new Error(`test/support/wallet-requests.ts does not know ${nameOf(route)}`);
  return recipe;
}
