/** A university that issues diplomas: claims by a signed webhook, later where the diploma is not signed yet, and revocation. */
import { randomInt } from 'node:crypto';
import express from 'express';
import { VidimusClient, VidimusError, verifyWebhook } from 'vidimus/client';

const {
  VIDIMUS_URL = 'http://localhost:3000',
  VIDIMUS_CLIENT_ID,
  VIDIMUS_CLIENT_SECRET,
  WEBHOOK_SECRET,
  PORT = '8081',
  UNIVERSITY_URL = `http://127.0.0.1:${PORT}`,
} = process.env;

const vidimus = new VidimusClient({ url: VIDIMUS_URL, clientId: VIDIMUS_CLIENT_ID, clientSecret: VIDIMUS_CLIENT_SECRET });
/** The register. `isSigned`: whether the dean has signed; a wallet that comes before that comes again. */
const students = new Map([
  ['4711', { name: 'Ada Lovelace', degree: 'MSc Mathematics', isSigned: true }],
  ['4712', { name: 'Alan Turing', degree: 'PhD Logic', isSigned: false }],
]);
/** Which student an offer was made for. A real university keeps it in its database, longer than the offers live. */
const studentOfSession = new Map();

const claimsOf = ({ name, degree }) => ({ name, degree, awarded_by: 'University of Acme' });

const app = express();
app.disable('x-powered-by');

/** The service asks for claims when a wallet collects, so nothing that was put down in an offer is out of date. */
app.post('/webhooks/claims', express.raw({ type: 'application/json', limit: '1mb' }), async (request, response) => {
  let delivery;
  try {
    delivery = await verifyWebhook(request.headers, request.body, WEBHOOK_SECRET);
  } catch (error) {
    console.error(`a webhook was refused: ${error.message}`);
    return response.status(401).end();
  }
  const { session, credential_configuration_id: configuration } = delivery.body;
  const student = students.get(studentOfSession.get(session));
  if (student === undefined) return response.status(404).end();
  response.json(student.isSigned ? { [configuration]: claimsOf(student) } : { deferred: true, interval: 5 });
});

/** What the staff does. In front of it stands the login of the university, which is not shown here. */
const staff = express.Router();
app.use('/staff', staff);

/** A login that is in a cookie comes with the forms of other sites, too. */
staff.use((request, response, next) => {
  if (!['same-origin', undefined].includes(request.get('sec-fetch-site')))
    return response.status(403).json({ error: 'not from another site' });
  next();
});

staff.param('number', (_request, response, next, number) => {
  response.locals.student = students.get(number);
  if (response.locals.student === undefined) response.status(404).json({ error: 'no such student' });
  else next();
});

staff.post('/students/:number/offer', async (request, response) => {
  const { number } = request.params;
  // Goes another way than the link, such as in a letter: whoever has both gets the diploma.
  const code = String(randomInt(1_000_000)).padStart(6, '0');
  const { uri, session } = await vidimus.post('/issuer/offer', {
    body: {
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['diploma'],
      reference: `student ${number}`,
      tx_code: code,
    },
  });
  studentOfSession.set(session, number);
  response.status(201).json({ uri, code });
});

/** The dean signs. Wallets that came before get their diploma when they come again. */
staff.post('/students/:number/sign', async (request, response) => {
  response.locals.student.isSigned = true;
  for (const session of sessionsOf(request.params.number)) {
    for await (const { transactionId } of vidimus.list('/issuer/deferred', { query: { session } })) {
      await vidimus.post('/issuer/deferred/{transactionId}/complete', {
        path: { transactionId },
        body: { claims: claimsOf(response.locals.student) },
      });
    }
  }
  response.status(204).end();
});

/** Takes back every diploma of a student. What is revoked stays revoked. */
staff.post('/students/:number/revoke', async (request, response) => {
  for (const sessionId of sessionsOf(request.params.number)) {
    const { status } = await vidimus.get('/session/{id}', { path: { id: sessionId } });
    if (status === 'completed') await vidimus.post('/session/revoke', { body: { sessionId, status: 1 } });
  }
  response.status(204).end();
});

const sessionsOf = (number) => [...studentOfSession].flatMap(([session, of]) => (of === number ? [session] : []));

/** What is issued, written anew at each start. */
async function writeConfiguration() {
  await vidimus.post('/issuer/config', { body: { display: [{ name: 'University of Acme', locale: 'en' }] } });
  /** @type {import('vidimus/client').Schemas['CredentialConfigurationInput']} */
  const diploma = {
    id: 'diploma',
    config: { format: 'dc+sd-jwt', display: [{ name: 'Diploma', locale: 'en' }] },
    vct: 'urn:acme:diploma:1',
    disclosureFrame: { _sd: ['name', 'degree', 'awarded_by'] },
    claimsWebhook: { url: `${UNIVERSITY_URL}/webhooks/claims` },
    statusManagement: true,
  };
  const { id, ...changes } = diploma;
  try {
    await vidimus.patch('/issuer/credentials/{id}', { path: { id }, body: changes });
  } catch (error) {
    if (!(error instanceof VidimusError) || error.code !== 'not_found') throw error;
    await vidimus.post('/issuer/credentials', { body: diploma });
  }
}

await writeConfiguration();
app.listen(Number(PORT), '127.0.0.1', () => console.log(`the university is at ${UNIVERSITY_URL}`));
