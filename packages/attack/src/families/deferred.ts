import { bad, type Family, NoControl, type Safe } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Grant, Issuer } from '../targets/issuer.ts';
import type { OfferSource } from '../targets/offers.ts';
import { issueCredential } from './common.ts';

const deferringSources = new WeakMap<Issuer, OfferSource | null>();

/** A deferred credential. @throws Skip when no offer leads to one. */
async function defer(issuer: Issuer): Promise<{ grant: Grant; id: string }> {
  issuer.endpoint('deferred_credential_endpoint');
  const knownSource = deferringSources.get(issuer);
  if (knownSource === null) throw new Skip('no credential is deferred');
  const candidates = knownSource === undefined ? issuer.sources.filter(({ kind }) => kind === 'pre') : [knownSource];
  for (const source of candidates) {
    const grant = await issuer.token(source);
    const answer = await issuer.credential(grant, await issuer.goodBody(grant));
    if (answer.status !== 202) continue;
    deferringSources.set(issuer, source);
    return { grant, id: String(answer.json.transaction_id) };
  }
  deferringSources.set(issuer, null);
  throw new Skip('no credential is deferred');
}
const poll = (issuer: Issuer, grant: Grant, body: unknown) => issuer.message('deferred_credential_endpoint', grant, body);
const pollWith = (body: (id: string, issuer: Issuer) => unknown) => async (issuer: Issuer) => {
  const { grant, id } = await defer(issuer);
  return poll(issuer, grant, await body(id, issuer));
};
const UNKNOWN = bad('invalid_transaction_id', 'invalid_credential_request');

export const deferred: Family<Issuer> = {
  id: 'deferred',
  title: 'Deferred credentials',
  async control(issuer) {
    const { grant, id } = await defer(issuer);
    const { status } = await poll(issuer, grant, { transaction_id: id });
    if (status !== 202 && status !== 200) throw new NoControl(`a right question for a deferred credential: ${status}`);
  },
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 9.3', why: 'a transaction belongs to who began it', safe: UNKNOWN },
      {
        'a transaction that was guessed': pollWith(() => ({ transaction_id: 'guessed' })),
        'the transaction of another': pollWith(async (_, issuer) => ({ transaction_id: (await defer(issuer)).id })),
        'no transaction': pollWith(() => ({})),
        'a number as transaction': pollWith(() => ({ transaction_id: 1 })),
        'a list of transactions': pollWith((id) => ({ transaction_id: [id] })),
        'a transaction with a NUL': pollWith(() => ({ transaction_id: 'a\0b' })),
        'a transaction with a character more': pollWith((id) => ({ transaction_id: `${id}x` })),
        'a body that is no JSON': pollWith(() => '{'),
      },
    ),
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 9.1', why: 'the token is needed here, too', safe: { status: [401] } },
      {
        'no token': async (issuer) => {
          const { id } = await defer(issuer);
          return issuer.http.json(issuer.endpoint('deferred_credential_endpoint'), { transaction_id: id });
        },
        'a proof for the credential endpoint': async (issuer) => {
          const { grant, id } = await defer(issuer);
          if (!issuer.boundTokens) throw new Skip('tokens are not bound');
          const dpop = { payload: { htu: issuer.endpoint('credential_endpoint') } };
          return issuer.resource(issuer.endpoint('deferred_credential_endpoint'), grant, { transaction_id: id }, { dpop });
        },
        'another key': async (issuer) => {
          const { grant, id } = await defer(issuer);
          if (!issuer.boundTokens) throw new Skip('tokens are not bound');
          return poll(issuer, { ...grant, key: newKey() }, { transaction_id: id });
        },
      },
    ),
  ],
};

const notify =
  (change: Record<string, unknown> | string, isOtherSender = false) =>
  async (issuer: Issuer) => {
    const grant = await issuer.token();
    const { response } = await issuer.issue(grant);
    const sender = isOtherSender ? await issuer.token() : grant;
    const body =
      typeof change === 'string' ? change : { notification_id: response.notification_id, event: 'credential_accepted', ...change };
    return issuer.resource(issuer.endpoint('notification_endpoint'), sender, body);
  };
const REFUSED: Safe = bad('invalid_notification_id', 'invalid_notification_request');

export const notifications: Family<Issuer> = {
  id: 'notifications',
  title: 'Notifications of wallets',
  async control(issuer) {
    issuer.endpoint('notification_endpoint');
    await issueCredential(issuer);
    const { status } = await notify({})(issuer);
    if (status >= 300) throw new NoControl(`a right notification: ${status}`);
  },
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 11.3', why: 'a wallet speaks of what it got itself', safe: REFUSED },
      {
        'a notification_id that was guessed': notify({ notification_id: 'guessed' }),
        'the notification_id of another': notify({}, true),
        'no notification_id': notify({ notification_id: undefined }),
        'a number as notification_id': notify({ notification_id: 1 }),
        'no event': notify({ event: undefined }),
        'an unknown event': notify({ event: 'stolen' }),
        'an event in capitals': notify({ event: 'CREDENTIAL_ACCEPTED' }),
        'a list of events': notify({ event: ['credential_accepted'] }),
        'a description with a quote': notify({ event_description: 'a "b"' }),
        'a description with a line break': notify({ event_description: 'a\nb' }),
        'a body that is no JSON': notify('{'),
      },
    ),
    {
      name: 'no token',
      section: 'OpenID4VCI 1.0 section 11.1',
      why: 'strangers say nothing about credentials',
      safe: { status: [401] },
      async run(issuer) {
        const { response } = await issuer.issue(await issuer.token());
        return issuer.http.json(issuer.endpoint('notification_endpoint'), {
          notification_id: response.notification_id,
          event: 'credential_deleted',
        });
      },
    },
  ],
};
