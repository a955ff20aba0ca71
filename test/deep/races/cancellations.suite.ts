import { expect } from 'chai';
import { created, offerBody, presentationBody } from '../../support/populated.ts';
import { answerOf, fetchRequest } from '../../support/presenter.ts';
import { type RacedSuite, type Racing, readySessions, tally, times } from '../../support/raced-services.ts';
import { newKey } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';

const CALLERS = 24;
const ROUNDS = 4;

/** Half of the callers cancel, half do something else, in turn. */
async function against(racing: Racing, session: string, other: (index: number) => Promise<Answer>) {
  const { service, token } = racing;
  const cancel = () => service.call('POST', `/session/${session}/cancel`, { token });
  const answers = await times(CALLERS, (index) => (index % 2 === 0 ? other(index) : cancel()));
  const seen = await service.call('GET', `/session/${session}`, { token });
  return {
    others: tally(answers.filter((_, index) => index % 2 === 0)),
    cancels: tally(answers.filter((_, index) => index % 2 === 1)),
    session: seen.body,
  };
}

/** One of both came first, and the session says which. */
function expectOne(outcome: Awaited<ReturnType<typeof against>>, late: RegExp): void {
  const { others, cancels, session } = outcome;
  const isDone = others['200'] === 1;
  expect(others['200'] ?? 0, JSON.stringify(outcome)).to.equal(isDone ? 1 : 0);
  expect(cancels['200'] ?? 0, JSON.stringify(outcome)).to.equal(isDone ? 0 : 1);
  expect(Object.keys(cancels).filter((name) => !/^(200|409 conflict)$/.test(name))).to.deep.equal([]);
  expect(Object.keys(others).filter((name) => name !== '200' && !late.test(name))).to.deep.equal([]);
  expect(session.status).to.equal(isDone ? 'completed' : 'failed');
  expect(session.failure?.code).to.equal(isDone ? undefined : 'cancelled');
}

export const cancellations: RacedSuite = [
  'A cancellation',
  (racing) => {
    it('comes once, whatever else does', async () => {
      const { service, token } = racing();
      const { session } = await created(service, token, '/issuer/offer', offerBody('pid'));
      const answers = await times(CALLERS, () =>
        service.call('POST', `/session/${session}/cancel`, { token }),
      );
      expect(tally(answers)).to.deep.equal({ 200: 1, '409 conflict': CALLERS - 1 });
    });

    it('or the redemption of a code: no token is had afterwards', async () => {
      const { service, token, wallet } = racing();
      for (let round = 0; round < ROUNDS; round++) {
        const { uri, session } = await created(service, token, '/issuer/offer', offerBody('pid'));
        const code = await wallet.code(uri);
        // The wallet may ask again for the tokens of one grant, until the offer is cancelled.
        const { cancels, session: seen } = await against(racing(), session, () => wallet.redeem(code));
        expect(cancels['200'], 'an offer without a credential can be cancelled').to.equal(1);
        expect([seen.status, seen.failure.code]).to.deep.equal(['failed', 'cancelled']);
        expect(tally([await wallet.redeem(code)])).to.deep.equal({ '400 invalid_grant': 1 });
      }
    });

    it('or a credential: exactly one of both', async () => {
      const { wallet } = racing();
      for (let round = 0; round < ROUNDS; round++) {
        const [ready] = await readySessions(racing(), 1);
        let asked = false;
        const outcome = await against(racing(), ready?.session ?? '', async () => {
          const answer = await wallet.request(ready?.accessToken ?? '', 'pid');
          // A token serves several requests; what counts is whether any came before the end.
          const isFirst = answer.status === 200 && !asked;
          asked ||= answer.status === 200;
          return isFirst || answer.status !== 200 ? answer : { ...answer, status: 429, body: {} };
        });
        expectOne(
          outcome,
          /^(429|4\d\d (credential_request_denied|invalid_token|invalid_credential_request))$/,
        );
      }
    });

    it('or a response: exactly one of both', async () => {
      const { service, token, wallet } = racing();
      const holder = newKey();
      const [session] = await readySessions(racing(), 1);
      const issued = await wallet.request(session?.accessToken ?? '', 'pid', { key: holder });
      const credential = issued.body.credentials[0].credential as string;
      const { vct } = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      const { webhook: _webhook, ...question } = presentationBody('ended', 'signing');
      const credentials = [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: [vct] } }];
      await created(service, token, '/verifier/config', { ...question, dcql_query: { credentials } });
      for (let round = 0; round < ROUNDS; round++) {
        const json = { response_type: 'uri', requestId: 'ended' };
        const offer = await created(service, token, '/verifier/offer', json);
        const request = await fetchRequest(service, offer.uri);
        const forms = await times(CALLERS, () => answerOf(request, credential, holder));
        const outcome = await against(racing(), offer.session, (index) =>
          service.call('POST', request.response_uri, { form: forms[index] ?? {} }),
        );
        expectOne(outcome, /^4\d\d invalid_request$/);
      }
    });
  },
];
