import { issuanceMetadataRoutes } from '../../adapters/http/issuance/metadata.routes.ts';
import { GetIssuerMetadata } from '../../application/issuance/issuer-metadata.ts';
import type { Feature } from './feature.ts';

/** What an issuer says about itself. */
export const issuerMetadata: Feature = {
  classes: [GetIssuerMetadata],
  open: [issuanceMetadataRoutes],
};
