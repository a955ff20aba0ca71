import { dpopProof, newKey, type RawWallet } from '../../support/raw-wallet.ts';
import { attestedHeaders, type World } from './world.ts';

/** An access token of the strict tenant: attested, with DPoP nonces, by authorization code. */
export async function strictTokens(world: World, wallet: RawWallet): Promise<string> {
  const instance = newKey();
  const clientId = world.provider.clientId;
  const probe = await wallet.par(
    { scope: 'scope-card', client_id: clientId },
    await attestedHeaders(world, wallet, 'par', { instance }),
  );
  const nonce = probe.headers.get('dpop-nonce') ?? '';
  const send = async (endpoint: 'par' | 'token') => ({
    ...(await attestedHeaders(world, wallet, endpoint, { instance })),
    DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/${endpoint}`, { payload: { nonce } }),
  });
  const pushed = await wallet.par({ scope: 'scope-card' }, await send('par'));
  if (pushed.status !== 201) throw new Error(`par: ${pushed.text}`);
  const code = await wallet.authorize(pushed.body.request_uri);
  const answer = await wallet.redeemCode(code, {}, await send('token'));
  if (answer.status !== 200) throw new Error(`token: ${answer.text}`);
  return answer.body.access_token as string;
}
