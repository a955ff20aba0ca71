import { type Schemas, type Session, VidimusClient, VidimusError, verifyWebhook, type WebhookAnswer } from 'vidimus/client';

/** Code of a backend; it is compiled, and run without a service. */
const client = new VidimusClient({ url: 'http://127.0.0.1:1', clientId: 'shop', clientSecret: 'secret' });

export async function askForAge(): Promise<boolean> {
  const request = await client.post('/verifier/offer', { body: { response_type: 'uri', requestId: 'of-age', reference: 'order 17' } });
  const session: Session = await client.waitForSession(request.session, { timeoutMs: 60_000 });
  const failed: string | undefined = session.failure?.code;
  return failed === undefined && session.status === 'completed';
}

export async function claimsOf(headers: Headers, body: Uint8Array): Promise<WebhookAnswer<'claims'>> {
  const delivery = await verifyWebhook<'claims'>(headers, body, ['whsec_one', 'whsec_two']);
  const configuration: string = delivery.body.credential_configuration_id;
  return { [configuration]: { name: 'Ada' } };
}

export async function names(): Promise<string[]> {
  const names: string[] = [];
  for await (const { id, name } of client.list('/tenant', { query: { limit: 100 } })) names.push(id, name);
  return names;
}

export async function askForCity(): Promise<void> {
  const body: Schemas['PresentationConfigurationInput'] = {
    id: 'city',
    dcql_query: {
      credentials: [
        {
          id: 'pid',
          format: 'dc+sd-jwt',
          meta: { vct_values: ['urn:eudi:pid:1'] },
          claims: [{ path: ['address', 'locality'] }, { path: ['nationalities', null] }, { path: ['degrees', 0] }],
        },
      ],
    },
  };
  await client.post('/verifier/config', { body });
}

/** Calls that the types reject. */
export async function wrong(): Promise<void> {
  // @ts-expect-error no such address
  await client.get('/sessions');
  // @ts-expect-error not by this method
  await client.put('/session');
  // @ts-expect-error the id is missing
  await client.get('/session/{id}');
  // @ts-expect-error the body is missing
  await client.post('/verifier/offer');
  // @ts-expect-error an offer has no such flow
  const flow: Schemas['OfferRequest']['flow'] = 'by_hand';
  // @ts-expect-error no such parameter
  await client.get('/session', { query: { page: 2 } });
  // @ts-expect-error a tenant has no such member
  (await client.get('/tenant/{id}', { path: { id: 'a' } })).nothing;
  // @ts-expect-error not a list
  for await (const one of client.list('/session-config')) void one;
  void flow;
  const status: Schemas['Session']['status'] = 'fetched';
  // @ts-expect-error never equal
  if (status === 'done') throw new Error(status);
}

const error: unknown = await client.get('/session').catch((reason: unknown) => reason);
if (!(error instanceof VidimusError)) throw new Error('an unreachable service answered');
console.log(error.code, error.detail);
