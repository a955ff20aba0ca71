import { expect } from 'chai';
import { Backend } from '../../support/backend.ts';
import { createResource, presentationBody } from '../../support/populated.ts';
import { fetchRequest, makeResponse } from '../../support/present.ts';
import { callInParallel, countOutcomes, prepareSessions, type RaceSuite } from '../../support/raced-services.ts';
import { newKey } from '../../support/raw-wallet.ts';

const CALLERS = 40;

export const responseCodes: RaceSuite = [
  'response code of a waiting result',
  (racing) => {
    let backend: Backend;
    before(async () => {
      backend = await Backend.start();
    });
    after(() => backend.close());

    it('is consumed once, and the backend is notified of the result once', async () => {
      const { service, token, wallet } = racing();
      const holder = newKey();
      const [readySession] = await prepareSessions(racing(), 1);
      const credentialResponse = await wallet.request(readySession?.accessToken ?? '', 'pid', { key: holder });
      const credential = credentialResponse.body.credentials[0].credential as string;
      const { vct } = JSON.parse(Buffer.from(credential.split('.')[1] ?? '', 'base64url').toString());
      const credentials = [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: [vct] } }];
      await createResource(service, token, '/verifier/config', {
        ...presentationBody('awaited', 'signing'),
        dcql_query: { credentials },
        requireResponseCode: true,
        redirectUri: 'https://shop.example/done',
        webhook: { url: `${backend.url}/presented` },
      });
      for (let attempt = 0; attempt < 3; attempt++) {
        backend.clearCalls();
        const json = { response_type: 'uri', requestId: 'awaited' };
        const offer = await createResource(service, token, '/verifier/offer', json);
        const request = await fetchRequest(service, offer.uri);
        const form = await makeResponse(request, credential, holder);
        const answer = await service.call('POST', request.response_uri, { form });
        expect(answer.status, answer.text).to.equal(200);
        const code = new URL(answer.body.redirect_uri).searchParams.get('response_code');
        const path = `/session/${offer.session}?response_code=${code}`;
        const answers = await callInParallel(CALLERS, () => service.call('GET', path, { token }));
        expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
        expect(countOutcomes(answers)['403 forbidden']).to.equal(CALLERS - 1);
        expect(backend.calls).to.have.length(1);
        const sessionResponse = await service.call('GET', `/session/${offer.session}`, { token });
        expect(sessionResponse.body.status, sessionResponse.text).to.equal('completed');
      }
    });
  },
];
