/** Members by which an upstream would be led elsewhere than the routing says, as LiteLLM, OpenRouter and others have them. */
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
  // Of OpenRouter and Vercel's gateway.
  'preset',
  'providerOptions',
  'extra_body',
  // Of Azure, which in a session's query take the place of the model.
  'deployment',
  'deployment_id',
] as const;
export type SteeringMember = (typeof steeringMembers)[number];
