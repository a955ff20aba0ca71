import { type CaseResult, describe, type Family, held, open } from '../core/case.ts';
import { headerOf, makeJwt, newKey, payloadOf } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { asAdvice, table } from '../core/table.ts';
import type { CardAlteration } from '../targets/sd-jwt.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { CONCURRENT_CALLERS, evaluateSingleUse, runConcurrently } from './common.ts';
import { presentsCard } from './presenting.ts';

const isInternalsFree = (text: string): boolean => !/\bat .+:\d+:\d+|Traceback|node_modules|SQLITE/i.test(text);

/** Presents a credential that contains an address of the listener. */
const presentWithAddress = (alteration: (address: string) => CardAlteration) => (verifier: Verifier) =>
  verifier.canary.watch(async (address) => {
    const request = await verifier.ask();
    return verifier.answer(request, { [queryOf(request).id]: [await verifier.card(request, alteration(address))] });
  });
/** The credential as signed by another issuer. */
const alteredCard = (header: object, payload: object): CardAlteration => ({
  jwt: (jwt) => {
    const { x5c: _, ...otherHeaders } = headerOf(jwt);
    return makeJwt(newKey(), { ...otherHeaders, ...header }, { ...payloadOf(jwt), ...payload });
  },
});

export const verifierSsrf: Family<Verifier> = {
  id: 'verifier-ssrf',
  title: 'Untrusted addresses that a verifier must not call',
  async control(verifier) {
    if (!verifier.http.mayRace((await verifier.ask()).url)) throw new Skip('the listener is reached from this machine alone');
    await presentsCard(verifier);
  },
  cases: table<Verifier>(
    { section: 'OpenID4VP 1.0 section 14', why: 'what nobody trusts says nowhere to go', safe: { status: [400] } },
    {
      'the status of a credential that nobody signed': presentWithAddress((uri) =>
        alteredCard({}, { status: { status_list: { idx: 0, uri } } }),
      ),
      'the type of a credential that nobody signed': presentWithAddress((vct) => alteredCard({}, { vct })),
      'the issuer of a credential that nobody signed': presentWithAddress((iss) => alteredCard({ kid: 'x' }, { iss })),
      'keys that are elsewhere (jku)': presentWithAddress((jku) => alteredCard({ jku, kid: 'x' }, {})),
      'certificates that are elsewhere (x5u)': presentWithAddress((x5u) => alteredCard({ x5u }, {})),
      'a key binding whose keys are elsewhere': presentWithAddress((jku) => ({ keyBinding: { header: { jku, x5u: jku, kid: jku } } })),
      'a holder that is a document elsewhere': presentWithAddress((kid) => alteredCard({}, { cnf: { kid, jku: kid } })),
      'keys of a wallet that are elsewhere': (verifier) =>
        verifier.canary.watch(async (address) =>
          verifier.http.form((await verifier.ask()).url, {
            wallet_metadata: JSON.stringify({ jwks_uri: address, issuer: address, logo_uri: address }),
          }),
        ),
      'an answer that is elsewhere': (verifier) =>
        verifier.canary.watch(async (address) => {
          const request = await verifier.ask();
          return verifier.post(request, { response_uri: address, request_uri: address, state: String(request.payload.state) });
        }),
    },
  ),
};

export const verifierRaces: Family<Verifier> = {
  id: 'verifier-races',
  title: 'Many answers at once to one request',
  async control(verifier) {
    if (!verifier.http.mayRace((await verifier.ask()).url)) throw new Skip('only targets on this machine are raced');
    await presentsCard(verifier);
  },
  cases: table<Verifier>(
    {
      section: 'OpenID4VP 1.0 section 14.1',
      why: `one request has one answer, even of ${CONCURRENT_CALLERS} at once`,
      safe: { status: [400] },
    },
    {
      'one answer, many times': async (verifier) => {
        const request = await verifier.ask();
        const token = { [queryOf(request).id]: [await verifier.card(request)] };
        return evaluateSingleUse(await runConcurrently(CONCURRENT_CALLERS, () => verifier.answer(request, token)));
      },
      'many answers with key bindings of their own': async (verifier) => {
        const request = await verifier.ask();
        await verifier.held(request);
        const tokens = await runConcurrently(CONCURRENT_CALLERS, async (index) => ({
          [queryOf(request).id]: [await verifier.card(request, { keyBinding: { payload: { jti: String(index) } } })],
        }));
        return evaluateSingleUse(await Promise.all(tokens.map((token) => verifier.answer(request, token))));
      },
    },
  ),
};

const checkNoInternals = async (answer: Promise<{ text: string; status: number }>): Promise<CaseResult> => {
  const { text, status } = await answer;
  if (status >= 500) return open(`breaks: ${status}`);
  return isInternalsFree(text) ? held(String(status)) : open('the inside is shown');
};

export const verifierHttp: Family<Verifier> = {
  id: 'verifier-http',
  title: 'Methods, bodies and what errors tell',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'RFC 9110 section 15.5.6', why: 'the place for answers has one method', safe: { status: [400, 404, 405] } },
      Object.fromEntries(
        ['GET', 'PUT', 'DELETE', 'PATCH'].map((method) => [
          `${method} to the place for answers`,
          async (verifier: Verifier) => verifier.http.call((await verifier.ask()).payload.response_uri, { method }),
        ]),
      ),
    ),
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 14', why: 'errors tell strangers nothing about the inside', safe: { status: [400] } },
      {
        'bytes that are no UTF-8': async (verifier) => {
          const body = 'response=%ff%fe&state=%c3%28';
          const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
          return checkNoInternals(verifier.http.call((await verifier.ask()).payload.response_uri, { method: 'POST', headers, body }));
        },
        'percent signs that mean nothing': async (verifier) => {
          const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
          return checkNoInternals(
            verifier.http.call((await verifier.ask()).payload.response_uri, { method: 'POST', headers, body: 'vp_token=%zz%' }),
          );
        },
        'ten thousand members': async (verifier) => {
          const fields = Array.from({ length: 10_000 }, (_, index) => [`p${index}`, '1'] as const);
          return checkNoInternals(verifier.post(await verifier.ask(), fields));
        },
        'a NUL in the state': async (verifier) => checkNoInternals(verifier.post(await verifier.ask(), { state: 'a\0b', response: 'x' })),
      },
    ),
    {
      name: 'an answer to a request that was guessed',
      section: 'OpenID4VP 1.0 section 8.2',
      why: 'a request is found by its own address alone',
      safe: { status: [400, 404, 410] },
      async run(verifier) {
        const request = await verifier.ask();
        const { response_uri: address } = request.payload;
        return verifier.http.form(`${String(address).slice(0, String(address).lastIndexOf('/') + 1)}guessed`, {
          state: 'x',
          response: 'x',
        });
      },
    },
    asAdvice({
      name: 'an answer after which others may read it in a cache',
      section: 'OpenID4VP 1.0 section 8.2',
      why: 'the answer may lead to the session of the user',
      safe: { status: [200] },
      async run(verifier) {
        const request = await verifier.ask();
        const answer = await verifier.answer(request, { [queryOf(request).id]: [await verifier.card(request)] });
        const said = answer.headers['cache-control'] ?? 'no Cache-Control';
        return /no-store/.test(said) || answer.status >= 300 ? held(said) : open(`${said}: ${describe(answer)}`);
      },
    }),
  ],
};
