/** Members by which LiteLLM, OpenRouter and others would send a call elsewhere than the routing says. */
export const steeringMembers = [
  'api_base',
  'base_url',
  'api_key',
  'custom_llm_provider',
  'models',
  'fallbacks',
  'provider',
  'route',
  'model_list',
  'user_config',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'extra_headers',
  'extra_query',
  'fallback_models',
  'router_settings_override',
  'litellm_credential_name',
  'aws_bedrock_runtime_endpoint',
  'azure_endpoint',
  'vertex_project',
  'vertex_location',
  // OpenRouter and Vercel's gateway.
  'preset',
  'providerOptions',
  'extra_body',
  // Azure. In the query of a session, these replace the model.
  'deployment',
  'deployment_id',
] as const;
export type SteeringMember = (typeof steeringMembers)[number];
