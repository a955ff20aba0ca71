import { Store } from '../../../application/ports/store.ts';
import type { RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, rejected, type World } from './world.ts';

type Deferral = { readonly wallet: RawWallet; readonly token: string; readonly transactionId: string };

async function requestDeferred(world: World): Promise<Deferral> {
  const { wallet, token } = await world.token(['slow']);
  const answer = await wallet.request(token, 'slow');
  if (answer.status !== 202) throw new Error(`not deferred: ${answer.text}`);
  return { wallet, token, transactionId: answer.body.transaction_id };
}
const poll = (world: World, { wallet, token }: Deferral, json: unknown): Promise<Answer> =>
  world.service.call('POST', '/open/deferred_credential', { headers: wallet.authorization(token, { path: 'deferred_credential' }), json });
const pollDeferred =
  (json: (deferral: Deferral, world: World) => unknown) =>
  async (world: World): Promise<Answer> => {
    const deferral = await requestDeferred(world);
    return poll(world, deferral, await json(deferral, world));
  };
const INVALID = rejected('invalid_transaction_id');

async function notified(world: World, change: Record<string, unknown>, sendsTwice = false): Promise<Answer> {
  const { wallet, token } = await world.token();
  const { notification_id } = (await wallet.request(token, 'card')).body;
  const json = { notification_id, event: 'credential_accepted', ...change };
  const send = () =>
    world.service.call('POST', '/open/notification', { headers: wallet.authorization(token, { path: 'notification' }), json });
  if (sendsTwice) await send();
  return send();
}
const INVALID_NOTIFICATION = rejected('invalid_notification_request');

/** The deferred credential endpoint and the notification endpoint. */
export const deferredCases: readonly Case[] = [
  {
    row: 124,
    title: 'no token',
    run: ({ service }) => service.call('POST', '/open/deferred_credential', { json: { transaction_id: 'x' } }),
    expected: { status: 401, headers: { 'www-authenticate': /^DPoP (?!.*error=)/ } },
  },
  { row: 125, title: 'no transaction_id', run: pollDeferred(() => ({})), expected: rejected('invalid_credential_request') },
  {
    row: 125,
    title: 'a number as transaction_id',
    run: pollDeferred(() => ({ transaction_id: 1 })),
    expected: rejected('invalid_credential_request'),
  },
  { row: 126, title: 'an unknown transaction', run: pollDeferred(() => ({ transaction_id: 'unknown' })), expected: INVALID },
  {
    row: 126,
    title: 'the transaction of another session',
    run: pollDeferred(async (_deferral, world) => ({ transaction_id: (await requestDeferred(world)).transactionId })),
    expected: INVALID,
  },
  {
    row: 126,
    title: 'a transaction that was fetched',
    run: async (world) => {
      const deferral = await requestDeferred(world);
      const { transactionId } = deferral;
      await world.admin('open', 'POST', `/issuer/deferred/${transactionId}/complete`, { credential: 'a~' });
      await poll(world, deferral, { transaction_id: transactionId });
      return poll(world, deferral, { transaction_id: transactionId });
    },
    expected: INVALID,
  },
  {
    row: 126,
    title: 'a transaction that has expired',
    run: async (world) => {
      const deferral = await requestDeferred(world);
      await world.service.service.container.get(Store).maintenance.expireDeferred(new Date(Date.now() + 86_401_000), 1000);
      return poll(world, deferral, { transaction_id: deferral.transactionId });
    },
    expected: INVALID,
  },
  {
    row: 127,
    title: 'a transaction that failed',
    run: async (world) => {
      const deferral = await requestDeferred(world);
      const { transactionId } = deferral;
      await world.admin('open', 'POST', `/issuer/deferred/${transactionId}/fail`, { errorMessage: 'no' });
      return poll(world, deferral, { transaction_id: transactionId });
    },
    expected: rejected('credential_request_denied'),
  },
  {
    row: 128,
    title: 'a transaction that is pending',
    run: pollDeferred(({ transactionId }) => ({ transaction_id: transactionId })),
    expected: accepted(202),
  },
  {
    row: 129,
    title: 'a transaction that is pending, in the older form',
    run: async (world) => {
      const { wallet, token, transactionId } = await requestDeferred(world);
      const url = `${world.service.address}/deferred_credential`;
      return world.service.call('GET', `/deferred_credential?transaction_id=${transactionId}`, {
        headers: wallet.authorization(token, { url, method: 'GET' }),
      });
    },
    expected: rejected('issuance_pending'),
  },
  {
    row: 131,
    title: 'an unknown notification_id',
    run: (world) => notified(world, { notification_id: 'unknown' }),
    expected: rejected('invalid_notification_id'),
  },
  {
    row: 131,
    title: 'the notification_id of another session',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const { notification_id } = (await wallet.request(token, 'card')).body;
      return notified(world, { notification_id });
    },
    expected: rejected('invalid_notification_id'),
  },
  { row: 132, title: 'no event', run: (world) => notified(world, { event: undefined }), expected: INVALID_NOTIFICATION },
  {
    row: 132,
    title: 'an event in capitals',
    run: (world) => notified(world, { event: 'Credential_Accepted' }),
    expected: INVALID_NOTIFICATION,
  },
  { row: 132, title: 'an unknown event', run: (world) => notified(world, { event: 'lost' }), expected: INVALID_NOTIFICATION },
  { row: 133, title: 'a notification that is repeated', run: (world) => notified(world, {}, true), expected: accepted(204) },
  {
    row: 134,
    title: 'a description with a quote',
    run: (world) => notified(world, { event_description: '"' }),
    expected: INVALID_NOTIFICATION,
  },
  {
    row: 134,
    title: 'a description with an umlaut',
    run: (world) => notified(world, { event_description: 'ü' }),
    expected: INVALID_NOTIFICATION,
  },
];
