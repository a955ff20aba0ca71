import { serviceRoutes } from '../../adapters/http/service/service.routes.ts';
import type { Feature } from './feature.ts';

/** The service itself. */
export const service: Feature = { classes: [], administered: [serviceRoutes] };
