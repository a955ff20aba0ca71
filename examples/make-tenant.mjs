/**
 * Makes a tenant for an example, with everything that its backend needs, and prints it as the lines of an env file:
 * node --env-file=data/secrets.env examples/make-tenant.mjs shop > examples/shop/.env
 */
import { VidimusClient } from 'vidimus/client';

const { VIDIMUS_URL: url = 'http://localhost:3000', AUTH_CLIENT_ID, AUTH_CLIENT_SECRET } = process.env;
const [id = 'example'] = process.argv.slice(2);

const operator = new VidimusClient({ url, clientId: AUTH_CLIENT_ID, clientSecret: AUTH_CLIENT_SECRET });
const { clients } = await operator.post('/tenant', {
  body: {
    id,
    name: `The ${id}`,
    // What this one backend does. A real one that only asks has `presentation:request` alone.
    roles: ['issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'],
  },
});
const { clientId, secret: clientSecret } = clients[0];
const tenant = new VidimusClient({ url, clientId, clientSecret });
const { secret } = await tenant.post('/webhook-secret/rotate', { body: { overlapSeconds: 0 } });

console.log(`VIDIMUS_URL=${url}`);
console.log(`VIDIMUS_CLIENT_ID=${clientId}`);
console.log(`VIDIMUS_CLIENT_SECRET=${clientSecret}`);
console.log(`WEBHOOK_SECRET=${secret}`);
