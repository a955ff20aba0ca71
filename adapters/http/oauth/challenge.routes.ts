import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import { family } from '../route.ts';
import { challengeRoute } from './server-endpoints.ts';

const PLACE = { server: 'built-in', base: '/:tenant', tag: 'Wallet: issuance' } as const;
const SUMMARY =
  'Get a challenge for a client attestation (attestation-based client authentication section 6.1)';

export const challengeRoutes = family({ createChallenge: CreateChallenge }, ({ createChallenge }) => [
  challengeRoute(PLACE, SUMMARY, createChallenge),
]);
